use super::*;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use tar::{Builder, Header};

const HEAD: &str = "apiVersion: v2\nname: web\nversion: 1.2.0\nappVersion: 7.0\n";

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

/// A header that says exactly this, however hostile.
fn header(name: &[u8], kind: EntryType, size: u64) -> Header {
    let mut header = Header::new_ustar();
    header.as_old_mut().name[..name.len()].copy_from_slice(name);
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(0o644);
    header.set_cksum();
    header
}

fn packed(files: &[(&str, &str)]) -> Vec<u8> {
    let mut tar = Builder::new(Vec::new());
    for (name, text) in files {
        let header = header(name.as_bytes(), EntryType::Regular, text.len() as u64);
        tar.append(&header, text.as_bytes()).unwrap();
    }
    gzip(&tar.into_inner().unwrap())
}

/// A good chart with one more entry behind it.
fn with(header: &Header, body: &[u8]) -> Vec<u8> {
    let mut tar = Builder::new(Vec::new());
    tar.append(&self::header(b"web/Chart.yaml", EntryType::Regular, HEAD.len() as u64), HEAD.as_bytes()).unwrap();
    tar.append(header, body).unwrap();
    gzip(&tar.into_inner().unwrap())
}

#[test]
fn what_a_chart_says_of_itself_is_read() {
    let contents = inspect(&packed(&[
        ("web/Chart.yaml", HEAD),
        ("web/values.yaml", "replicas: 1\n"),
        ("web/README.md", "# Web\n"),
        ("web/templates/a.yaml", "kind: ConfigMap\n"),
        ("web/crds/b.yaml", "b"),
        ("web/crds/a.yaml", "a"),
        ("web/crds/notes.txt", "x"),
        ("web/charts/db/Chart.yaml", "name: db\nversion: 9.9.9\n"),
        ("web/charts/db/values.yaml", "other: true\n"),
        ("web/charts/db/crds/C.YAML", "c"),
        ("web/charts/crds/values.yaml", "x"),
    ]))
    .unwrap();

    assert_eq!((contents.name.as_str(), contents.version.as_str()), ("web", "1.2.0"));
    assert_eq!(contents.values.as_deref(), Some("replicas: 1\n"));
    assert_eq!(contents.readme.as_deref(), Some("# Web\n"));
    assert_eq!(
        contents.crds.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
        ["charts/db/crds/C.YAML", "crds/a.yaml", "crds/b.yaml"]
    );
    assert!(!contents.may_look_up && !contents.evaluates_texts);
}

#[test]
fn a_template_that_asks_the_cluster_is_noticed() {
    let asks = "{{ lookup \"v1\" \"Secret\" \"\" \"\" }}";
    for file in ["web/templates/a.yaml", "web/charts/db/templates/a.yaml", "web/values.yaml", "web/files/a.tpl"] {
        assert!(inspect(&packed(&[("web/Chart.yaml", HEAD), (file, asks)])).unwrap().may_look_up, "{file}");
    }
    assert!(inspect(&packed(&[("web/Chart.yaml", HEAD), ("web/charts/db-1.0.0.tgz", "…")])).unwrap().may_look_up);
    let values = ("web/values.yaml", "dns: lookup\n");
    assert!(!inspect(&packed(&[("web/Chart.yaml", HEAD), values])).unwrap().may_look_up, "a word is no template");
}

#[test]
fn a_template_that_evaluates_texts_is_noticed_since_anything_may_hide_in_them() {
    let evaluates = |text: &str| {
        let contents = inspect(&packed(&[("web/Chart.yaml", HEAD), ("web/templates/a.yaml", text)])).unwrap();
        (contents.may_look_up, contents.evaluates_texts)
    };
    for hidden in [
        r#"{{ tpl (b64dec "e3sgbG9va3VwICJ2MSIgIlNlY3JldCIgIiIgIiIgfX0=") . }}"#,
        r#"{{ tpl (print "{{ look" "up }}") . }}"#,
        r#"{{ .Values.x | tpl $ }}"#,
        "{{-\ttpl\n.Values.x $}}",
        r#"{{(tpl .Values.x .)}}"#,
    ] {
        assert_eq!(evaluates(hidden), (false, true), "{hidden}");
    }
    for plain in
        ["{{/* see _helpers.tpl */}}", "{{ .Values.tpl }}", "{{ include \"web.tplvalues\" . }}", "template: {}"]
    {
        assert_eq!(evaluates(plain), (false, false), "{plain}");
    }
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    for bad in [
        "../evil",
        "/etc/passwd",
        "web/../../evil",
        "web/./x",
        "web//x",
        "web/..",
        "./web/x",
        "other/x",
        "web\\..\\x",
        "C:/x",
        "web/a\nb",
        "web/a\u{1b}[31m",
    ] {
        let archive = with(&header(bad.as_bytes(), EntryType::Regular, 1), b"x");
        assert_eq!(inspect(&archive), Err(BadArchive::Name), "{bad:?}");
    }
    assert_eq!(inspect(&with(&header(b"web/\xff", EntryType::Regular, 1), b"x")), Err(BadArchive::Name));
    assert_eq!(inspect(&with(&header(b"web/Chart.yaml", EntryType::Regular, 1), b"x")), Err(BadArchive::Name), "twice");
    assert_eq!(inspect(&packed(&[("Chart.yaml", HEAD)])), Err(BadArchive::Name), "a file beside no folder");
}

#[test]
fn cve_2024_25620_links_and_devices_are_refused() {
    for kind in [
        EntryType::Symlink,
        EntryType::Link,
        EntryType::Char,
        EntryType::Block,
        EntryType::Fifo,
        EntryType::GNUSparse,
        EntryType::Continuous,
        EntryType::new(b'Z'),
    ] {
        let mut header = header(b"web/link", kind, 0);
        if matches!(kind, EntryType::Symlink | EntryType::Link) {
            header.set_link_name("/etc/passwd").unwrap();
            header.set_cksum();
        }
        // A sparse file without its map is not even an archive.
        let want = if kind == EntryType::GNUSparse { BadArchive::NotAnArchive } else { BadArchive::Link };
        assert_eq!(inspect(&with(&header, b"")), Err(want), "{kind:?}");
    }
}

#[test]
fn bombs_end_at_their_bounds() {
    let file = vec![0; usize::try_from(MOST_FILE).unwrap() + 1];
    let one = with(&header(b"web/big", EntryType::Regular, file.len() as u64), &file);
    assert!(one.len() < 100_000, "it is small while packed");
    assert_eq!(inspect(&one), Err(BadArchive::TooLarge));

    let mut tar = Builder::new(Vec::new());
    for n in 0..14 {
        let name = format!("web/{n}");
        tar.append(&header(name.as_bytes(), EntryType::Regular, MOST_FILE), &file[1..]).unwrap();
    }
    assert_eq!(inspect(&gzip(&tar.into_inner().unwrap())), Err(BadArchive::TooLarge), "many of the largest");

    let mut tar = Builder::new(Vec::new());
    for n in 0..100_000 {
        tar.append(&header(format!("web/{n}").as_bytes(), EntryType::Regular, 0), &b""[..]).unwrap();
    }
    assert_eq!(inspect(&gzip(&tar.into_inner().unwrap())), Err(BadArchive::TooMany));

    let endless_name = with(&header(b"././@LongLink", EntryType::GNULongName, 70 << 20), &vec![b'a'; 70 << 20]);
    assert_eq!(inspect(&endless_name), Err(BadArchive::TooLarge), "a name that never ends");
    assert_eq!(inspect(&vec![0; MOST_BYTES + 1]), Err(BadArchive::TooLarge));
}

#[test]
fn a_second_gzip_member_is_seen_as_helm_sees_it() {
    let mut tar = Builder::new(Vec::new());
    tar.append(&header(b"web/Chart.yaml", EntryType::Regular, HEAD.len() as u64), HEAD.as_bytes()).unwrap();
    let first = tar.get_ref().clone();
    let mut tar = Builder::new(Vec::new());
    tar.append(&header(b"../evil", EntryType::Regular, 1), &b"x"[..]).unwrap();
    let both = [gzip(&first), gzip(&tar.into_inner().unwrap())].concat();
    assert_eq!(inspect(&both), Err(BadArchive::Name));
}

#[test]
fn what_is_no_chart_is_refused() {
    for bytes in [&b""[..], b"not gzip", &gzip(b"not tar, but long enough to be looked at"), &packed(&[])[..20]] {
        let bad = inspect(bytes).unwrap_err();
        assert!(matches!(bad, BadArchive::NotAnArchive | BadArchive::NotAChart), "{bad:?}");
    }
    for head in [
        "",
        "[]",
        "name: web\n",
        "name: ../web\nversion: 1.0.0\n",
        "name: -web\nversion: 1.0.0\n",
        "name: web\nversion: ../1\n",
        "name: web\nname: db\nversion: 1.0.0\n",
        "a: &a [*a]\nname: web\nversion: 1.0.0\n",
    ] {
        assert_eq!(inspect(&packed(&[("web/Chart.yaml", head)])), Err(BadArchive::NotAChart), "{head:?}");
    }
    assert_eq!(inspect(&packed(&[("web/values.yaml", "a: 1")])), Err(BadArchive::NotAChart));
}
