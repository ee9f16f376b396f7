//! Certificates and keys that cannot be used are errors before anything runs.

mod common;

use common::weir;
use std::path::{Path, PathBuf};

fn shared(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../weir-server/tests/shared/tls");
    folder.join(name).canonicalize().unwrap()
}

/// What a switch says that is started with these files.
fn said(certificate: &Path, key: &Path, authorities: Option<&Path>) -> (i32, String) {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../p4/programs/l2_switch/l2_switch.p4");
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let mut arguments = vec!["run".to_owned(), text(&program)];
    arguments.extend(["-i", "0@null", "--p4runtime", "127.0.0.1:0", "--time", "50ms"].map(str::to_owned));
    arguments.extend([
        "--tls-cert".to_owned(),
        text(certificate),
        "--tls-key".to_owned(),
        text(key),
    ]);
    if let Some(path) = authorities {
        arguments.extend(["--tls-client-ca".to_owned(), text(path)]);
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (code, _, err) = weir(&arguments);
    (code, err)
}

#[test]
fn files_that_cannot_be_used_are_named_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let (pem, key, ca) = (shared("server.pem"), shared("server.key"), shared("ca.pem"));
    let (empty, other_key) = (file("empty", ""), shared("client.key"));
    let garbled = file(
        "garbled",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    );
    let cut = file("cut", "-----BEGIN CERTIFICATE-----\nAAAA\n");
    let zero = PathBuf::from("/dev/zero");
    let nowhere = folder.path().join("nowhere");
    let cases: [(&Path, &Path, Option<&Path>, &Path, &str); 11] = [
        (&empty, &key, None, &empty, "it holds no certificate"),
        (&key, &key, None, &key, "it holds no certificate"),
        (&garbled, &key, None, &garbled, "it is not a valid X.509 certificate"),
        (&cut, &key, None, &cut, "the certificate cannot be used"),
        (&pem, &empty, None, &empty, "it holds no private key"),
        (&pem, &pem, None, &pem, "it holds no private key"),
        (
            &pem,
            &other_key,
            None,
            &other_key,
            "it is not the key of the certificate",
        ),
        (&pem, &key, Some(&empty), &empty, "it holds no certificate"),
        (&pem, &key, Some(&garbled), &garbled, "certificate 1 of it"),
        (&pem, &zero, None, &zero, "is a character device"),
        (&pem, &key, Some(&nowhere), &nowhere, "cannot read"),
    ];
    for (certificate, key, authorities, named, reason) in cases {
        let (code, err) = said(certificate, key, authorities);
        assert_eq!(code, 2, "{err}");
        assert!(
            err.contains(named.to_str().unwrap()) && err.contains(reason),
            "{reason}: {err}"
        );
        assert!(!err.contains("running"), "{err}");
    }
    let (code, err) = said(&pem, &key, Some(&ca));
    assert!(code == 0 && err.contains("running"), "{err}");
}
