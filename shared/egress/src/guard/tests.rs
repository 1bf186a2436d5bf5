use super::*;

fn public() -> AddressGuard {
    AddressGuard::default()
}

fn operator() -> AddressGuard {
    AddressGuard { private: true, ports: vec![80, 443, 8080] }
}

/// Every spelling of an address that a public guard must not let be configured, and whether an operator may allow it.
const AT_HOME: [&str; 31] = [
    "https://127.0.0.1/",
    "https://127.1/",
    "https://0x7f000001/",
    "https://017700000001/",
    "https://2130706433/",
    "https://0177.0.0.1/",
    "https://0x7f.1/",
    "https://127.0.0.1./",
    "https://１２７.0.0.1/",
    "https://127。0。0。1/",
    "https://%31%32%37.0.0.1/",
    "https://[::1]/",
    "https://[0:0:0:0:0:0:0:1]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[::ffff:7f00:1]/",
    "https://10.0.0.1/",
    "https://172.16.0.1/",
    "https://192.168.1.1/",
    "https://100.64.0.1/",
    "https://[fc00::1]/",
    "https://[fd12:3456::1]/",
    "https://localhost/",
    "https://LOCALHOST/",
    "https://ⓛocalhost/",
    "https://a.localhost/",
    "https://jenkins/",
    "https://jenkins.ci.svc/",
    "https://jenkins.ci.svc.cluster.local/",
    "https://printer.lan/",
    "https://box.home.arpa/",
    "https://vault.corp.internal/",
];

const NEVER: [&str; 33] = [
    "https://0/",
    "https://0.0.0.0/",
    "https://169.254.169.254/",
    "https://2852039166/",
    "https://0xa9fea9fe/",
    "https://0251.0376.0251.0376/",
    "https://169.254.43518/",
    "https://255.255.255.255/",
    "https://224.0.0.1/",
    "https://192.0.2.1/",
    "https://198.51.100.1/",
    "https://203.0.113.1/",
    "https://192.0.0.192/",
    "https://168.63.129.16/",
    "https://100.100.100.200/",
    "https://[::]/",
    "https://[::127.0.0.1]/",
    "https://[::ffff:169.254.169.254]/",
    "https://[::ffff:0:127.0.0.1]/",
    "https://[fd00:ec2::254]/",
    "https://[2002:7f00:1::]/",
    "https://[64:ff9b::a9fe:a9fe]/",
    "https://[64:ff9b:1::]/",
    "https://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/",
    "https://[2001:db8::1]/",
    "https://[fec0::1]/",
    "https://[fe80::1]/",
    "https://[ff02::1]/",
    "https://metadata/",
    "https://metadata.google.internal/",
    "https://metadata.goog/",
    "https://instance-data/",
    "https://instance-data.ec2.internal/",
];

#[test]
fn cve_2026_44430_address_corpus_is_refused() {
    for bad in AT_HOME.iter().chain(&NEVER) {
        let refused = public().parse(bad).expect_err(bad);
        assert!(matches!(refused, AddressRefused::Range | AddressRefused::Name), "{bad}: {refused:?}");
    }
}

#[test]
fn an_operator_may_allow_private_networks_and_nothing_beyond() {
    for good in AT_HOME {
        operator().parse(good).expect(good);
        operator().parse(&good.replace("https:", "http:")).expect(good);
    }
    for bad in NEVER {
        assert!(matches!(operator().parse(bad), Err(AddressRefused::Range | AddressRefused::Name)), "{bad}");
    }
}

#[test]
fn names_that_can_be_mistaken_are_refused_from_everybody() {
    let long = format!("https://{}.example/", "a".repeat(64));
    let endless = format!("https://{}example/", "a.".repeat(130));
    for bad in [
        "https://localhost./",
        "https://charts.example./",
        "https://charts..example/",
        "https://-x.example/",
        "https://x-.example/",
        "https://xn--pple-43d.example/",
        "https://аpple.example/",
        "https://bücher.example/",
        "https://a*b.example/",
        "https://a!b.example/",
        "https://a;b.example/",
        "https://a'b.example/",
        &long,
        &endless,
    ] {
        for guard in [public(), operator()] {
            let refused = guard.parse(bad).expect_err(bad);
            assert!(matches!(refused, AddressRefused::Name | AddressRefused::NotAnAddress), "{bad}: {refused:?}");
        }
    }
}

#[test]
fn what_is_no_plain_web_address_is_refused_from_everybody() {
    for bad in [
        "",
        "charts.example",
        "//charts.example",
        "https://",
        "https:///x",
        "https:charts.example",
        "https:/charts.example",
        "https:////charts.example",
        "https://fe80::1%25eth0/",
        "https://[fe80::1%25eth0]/",
        "https://[fe80::1%eth0]/",
        "https://999.1.1.1/",
        "https://1.2.3.4.5/",
        "https://0x1ffffffff/",
        "file:///etc/passwd",
        "gopher://charts.example/",
        "unix:/run/docker.sock",
        "data:,x",
        "ftp://charts.example/",
        "oci://charts.example/x",
        "javascript:alert(1)",
        "https:\\\\charts.example/",
        "https://charts.example\\@127.0.0.1/",
        "https://charts.example/\r\nx: y",
        "ht\ntps://charts.example/",
        " https://charts.example/",
        "https://charts.example/ x",
        "https://charts.example/\0",
    ] {
        for guard in [public(), operator()] {
            assert_eq!(guard.parse(bad), Err(AddressRefused::NotAnAddress), "{bad:?}");
        }
    }
}

#[test]
fn a_user_part_is_refused_wherever_the_host_seems_to_be() {
    for bad in [
        "https://ok@127.0.0.1/",
        "https://charts.example@evil.example/",
        "https://:secret@charts.example/",
        "https://a:b@charts.example/",
        "https://a%40b@charts.example/",
    ] {
        assert_eq!(public().parse(bad), Err(AddressRefused::Credentials), "{bad}");
        assert_eq!(operator().parse(bad), Err(AddressRefused::Credentials), "{bad}");
    }
    assert_eq!(public().parse("https://127.0.0.1#@charts.example"), Err(AddressRefused::Range));
    assert_eq!(public().parse("https://127.0.0.1?@charts.example"), Err(AddressRefused::Range));
    assert_eq!(public().parse("https://127.0.0.1:443/@charts.example"), Err(AddressRefused::Range));
}

#[test]
fn plain_http_needs_an_operator_and_a_private_address() {
    assert_eq!(public().parse("http://charts.example/"), Err(AddressRefused::Insecure));
    assert_eq!(public().parse("http://127.0.0.1/"), Err(AddressRefused::Insecure));
    assert_eq!(operator().parse("http://1.1.1.1/"), Err(AddressRefused::Insecure));
    assert!(operator().parse("http://10.0.0.1:8080/").is_ok());
}

#[test]
fn only_listed_ports_are_dialled() {
    assert!(public().parse("https://charts.example:443/").is_ok());
    for port in [22, 80, 2375, 6379, 8443, 10250] {
        assert_eq!(public().parse(&format!("https://charts.example:{port}/")), Err(AddressRefused::Port(port)));
    }
    assert_eq!(public().parse("https://charts.example:0/"), Err(AddressRefused::Port(0)));
    assert_eq!(public().parse("https://charts.example:65536/"), Err(AddressRefused::NotAnAddress));
    assert_eq!(
        AddressGuard { private: false, ports: vec![] }.parse("https://charts.example/"),
        Err(AddressRefused::Port(443))
    );
}

#[test]
fn ordinary_addresses_pass() {
    for good in [
        "https://charts.example/stable/index.yaml?x=1",
        "https://1.1.1.1/",
        "https://[2606:4700::1111]/",
        "https://my_bucket.s3.example/",
        "https://CHARTS.example/",
        "https://localhost.example/",
        "https://internal.example/",
        "https://127.0.0.1.nip.example/",
    ] {
        public().parse(good).expect(good);
    }
}
