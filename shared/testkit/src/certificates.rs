//! An authority of one's own and a certificate for loopback, made by the program openssl.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// The user that servers with certificates know, beside the default one.
pub const USER: &str = "robot";
/// That user's password; its sign has to be written as `%40` in an address.
pub const PASSWORD: &str = "p@ss";

/// A certificate for 127.0.0.1, good for servers and clients, and the authority behind it.
pub struct Certificates(TempDir);

impl Certificates {
    /// Makes both.
    pub fn make() -> Certificates {
        let made = Certificates(tempfile::tempdir().expect("a temporary folder should be made"));
        std::fs::write(made.path("ext"), "subjectAltName=IP:127.0.0.1\n").expect("a file should be written");
        made.openssl("req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=authority");
        made.openssl("req -newkey rsa:2048 -nodes -keyout key.pem -out request -subj /CN=redis");
        made.openssl(
            "x509 -req -in request -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile ext -out cert.pem",
        );
        made
    }

    /// A file of them: `ca.pem`, `cert.pem` or `key.pem`.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The words by which a redis-server takes TLS at a port, asks for a certificate, and knows the user.
    pub(crate) fn words(&self, port: u16) -> Vec<String> {
        let file = |name: &str| self.path(name).display().to_string();
        let mut words = vec!["--tls-port".to_owned(), port.to_string()];
        for (option, name) in [("cert", "cert.pem"), ("key", "key.pem"), ("ca-cert", "ca.pem")] {
            words.extend([format!("--tls-{option}-file"), file(name)]);
        }
        words.extend(["--tls-replication", "yes", "--tls-auth-clients", "yes"].map(str::to_owned));
        words.extend(["--user", USER, "on", &format!(">{PASSWORD}"), "~*", "&*", "+@all"].map(str::to_owned));
        words
    }

    #[expect(clippy::disallowed_methods, reason = "makes a test's own certificates, never part of the service")]
    fn openssl(&self, words: &str) {
        let mut openssl = Command::new("openssl");
        openssl.args(words.split(' ')).current_dir(self.0.path()).stdout(Stdio::null()).stderr(Stdio::null());
        let done = openssl.status().expect("these tests need the program openssl on the PATH");
        assert!(done.success(), "openssl {words}");
    }
}
