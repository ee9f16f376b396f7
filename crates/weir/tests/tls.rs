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
    // Its length is one less than it says.
    let damaged = file(
        "damaged",
        &std::fs::read_to_string(&pem).unwrap().replacen("MII", "MIA", 1),
    );
    let chain = |second: &str| std::fs::read_to_string(&pem).unwrap() + second;
    let rubbish = file(
        "rubbish",
        &chain("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
    );
    let not_base64 = file(
        "not_base64",
        "-----BEGIN PRIVATE KEY-----\n%AAA\n-----END PRIVATE KEY-----\n",
    );
    let encrypted = file(
        "encrypted",
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
    );
    let with_leaf = file("with_leaf", &(std::fs::read_to_string(&ca).unwrap() + &chain("")));
    let supported = "supported are RSA with 2048 to 4096 bits, ECDSA with P-256 or P-384, and Ed25519";
    let unsupported: Vec<[PathBuf; 2]> = ["p521", "secp256k1", "rsa1024"]
        .map(|name| [shared(&format!("{name}.pem")), shared(&format!("{name}.key"))])
        .to_vec();
    let client_only = [shared("client_only.pem"), shared("client_only.key")];
    let version1 = [shared("version1.pem"), shared("version1.key")];
    let zero = PathBuf::from("/dev/zero");
    let nowhere = folder.path().join("nowhere");
    let mut cases: Vec<(&Path, &Path, Option<&Path>, &Path, &str)> = vec![
        (&empty, &key, None, &empty, "it holds no certificate"),
        (&key, &key, None, &key, "it holds no certificate"),
        (
            &garbled,
            &key,
            None,
            &garbled,
            "certificate 1 of it is not a valid X.509 certificate",
        ),
        (
            &damaged,
            &key,
            None,
            &damaged,
            "certificate 1 of it is not a valid X.509 certificate",
        ),
        (
            &rubbish,
            &key,
            None,
            &rubbish,
            "certificate 2 of it is not a valid X.509 certificate",
        ),
        (
            &client_only[0],
            &client_only[1],
            None,
            &client_only[0],
            "expected serverAuth in its extended key usage",
        ),
        (
            &version1[0],
            &version1[1],
            None,
            &version1[0],
            "certificate 1 of it has version 1; expected version 3",
        ),
        (
            &pem,
            &not_base64,
            None,
            &not_base64,
            "expected base64 between its BEGIN and END, found `%` in line 2",
        ),
        (&pem, &encrypted, None, &encrypted, "it holds an encrypted private key"),
        (
            &pem,
            &key,
            Some(&with_leaf),
            &with_leaf,
            "certificate 2 of it is not that of an authority: expected basicConstraints",
        ),
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
    cases.extend(
        unsupported
            .iter()
            .map(|[pem, key]| (pem.as_path(), key.as_path(), None, key.as_path(), supported)),
    );
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
    let (code, err) = said(&shared("self_signed.pem"), &shared("self_signed.key"), None);
    assert!(code == 0 && err.contains("running"), "{err}");
}

/// What `weir ctl` says with these options of TLS. There need be no server.
fn ctl_said(options: &[(&str, &Path)]) -> String {
    let mut arguments = vec!["ctl", "--p4runtime", "127.0.0.1:1", "--timeout", "1s"];
    arguments.extend(options.iter().flat_map(|(name, path)| [*name, path.to_str().unwrap()]));
    arguments.extend(["count", "t"]);
    let (code, _, err) = weir(&arguments);
    assert_eq!(code, 2, "{err}");
    err
}

#[test]
fn files_of_a_client_that_cannot_be_used_are_named_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let (empty, garbled, fifo) = (
        folder.path().join("empty"),
        folder.path().join("garbled"),
        folder.path().join("fifo"),
    );
    std::fs::write(&empty, "").unwrap();
    std::fs::write(
        &garbled,
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    )
    .unwrap();
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    let (ca, pem, key) = (shared("ca.pem"), shared("client.pem"), shared("client.key"));
    let other = shared("server.key");
    let cases = [
        (&empty, "it holds no certificate in PEM"),
        (&key, "it holds no certificate in PEM"),
        (&garbled, "none of its certificates is a valid X.509 certificate"),
        (&fifo, "is a FIFO"),
    ];
    for (file, reason) in cases {
        let err = ctl_said(&[("--tls-ca", file)]);
        assert!(
            err.contains(file.to_str().unwrap()) && err.contains(reason),
            "{reason}: {err}"
        );
    }
    for name in ["--tls-cert", "--tls-key"] {
        let mut options = vec![("--tls-ca", ca.as_path()), ("--tls-cert", &pem), ("--tls-key", &key)];
        options.retain(|(option, _)| *option != name);
        options.push((name, &fifo));
        let err = ctl_said(&options);
        assert!(err.contains("is a FIFO"), "{name}: {err}");
    }
    let err = ctl_said(&[("--tls-ca", &ca), ("--tls-cert", &pem), ("--tls-key", &other)]);
    assert!(err.contains("it is not the key of the certificate"), "{err}");
    assert!(err.contains("server.key") && err.contains("client.pem"), "{err}");
    // With files that can be used, only the server is missing.
    let err = ctl_said(&[("--tls-ca", &ca), ("--tls-cert", &pem), ("--tls-key", &key)]);
    assert!(err.contains("cannot reach"), "{err}");
}
