//! TLS settings: PEM texts, and checks of them before a server starts.

use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;
use tonic::transport::{Certificate, Identity, ServerTlsConfig};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;
use x509_parser::time::ASN1Time;
use x509_parser::x509::X509Version;

/// Transport security: PEM texts.
#[derive(Debug, Clone)]
pub struct Tls {
    /// The server's certificate, and those between it and its authority.
    pub certificate: Vec<u8>,
    /// Its private key.
    pub key: Vec<u8>,
    /// Authorities of clients: with them, clients need a certificate (mutual TLS).
    pub client_authorities: Option<Vec<u8>>,
}

/// One of the PEM texts of [`Tls`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsPart {
    /// [`Tls::certificate`]
    Certificate,
    /// [`Tls::key`]
    Key,
    /// [`Tls::client_authorities`]
    ClientAuthorities,
    /// The authorities that a client trusts: see [`check_client_tls`].
    ServerAuthorities,
}

impl fmt::Display for TlsPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TlsPart::Certificate => "the certificate",
            TlsPart::Key => "the private key",
            TlsPart::ClientAuthorities => "the clients' authorities",
            TlsPart::ServerAuthorities => "the server's authorities",
        })
    }
}

/// A PEM text cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{part} cannot be used: {reason}")]
pub struct TlsError {
    /// Which.
    pub part: TlsPart,
    /// Why.
    pub reason: String,
}

/// Certificates of a PEM text are not valid now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutOfDate {
    /// Which text.
    pub part: TlsPart,
    /// The first of them, and when it is valid.
    pub first: String,
    /// How many others there are.
    pub others: usize,
}

impl fmt::Display for OutOfDate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The validity of an authority is not checked when its clients connect.
        let (what, effect) = match self.part {
            TlsPart::ClientAuthorities => ("the clients' authorities", "clients of it are still let in"),
            TlsPart::ServerAuthorities => ("the server's authorities", "servers of it are still trusted"),
            TlsPart::Certificate | TlsPart::Key => ("the certificate", "clients will refuse it"),
        };
        write!(f, "{what}: {}", self.first)?;
        match self.others {
            0 => {}
            1 => f.write_str(", and 1 other is out of date")?,
            others => write!(f, ", and {others} others are out of date")?,
        }
        write!(f, "; {effect}")
    }
}

impl Tls {
    /// Whether a server can be started with these: each can be read, the key is that of the
    /// certificate, and each authority can be trusted. For times of validity see
    /// [`Tls::out_of_date`].
    ///
    /// # Errors
    /// The first that cannot be used, and why.
    pub fn check(&self) -> Result<(), TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        check_identity(&self.certificate, &self.key, Side::Server, &provider)?;
        match &self.client_authorities {
            Some(pem) => check_authorities(pem, provider),
            None => Ok(()),
        }
    }

    /// Texts with certificates that are not valid at this time: clients refuse such a server;
    /// clients of such an authority are let in. A wrong clock looks the same, so this is no error.
    #[must_use]
    pub fn out_of_date(&self, now: SystemTime) -> Vec<OutOfDate> {
        let seconds = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let now = i64::try_from(seconds)
            .ok()
            .and_then(|s| ASN1Time::from_timestamp(s).ok());
        let Some(now) = now else { return Vec::new() };
        let authorities = self.client_authorities.as_deref();
        let texts = [
            (TlsPart::Certificate, Some(self.certificate.as_slice())),
            (TlsPart::ClientAuthorities, authorities),
        ];
        let texts = texts.into_iter().filter_map(|(part, pem)| Some((part, pem?)));
        let found = texts.filter_map(|(part, pem)| {
            let list = certificates(pem, part).unwrap_or_default();
            let mut reasons = list.iter().enumerate().filter_map(|(i, der)| not_valid(i, der, now));
            Some(OutOfDate {
                part,
                first: reasons.next()?,
                others: reasons.count(),
            })
        });
        found.collect()
    }

    /// The configuration of tonic's server.
    pub(crate) fn config(&self) -> ServerTlsConfig {
        let identity = Identity::from_pem(&self.certificate, &self.key);
        let config = ServerTlsConfig::new().identity(identity);
        match &self.client_authorities {
            Some(pem) => config.client_ca_root(Certificate::from_pem(pem)),
            None => config,
        }
    }
}

/// Why a certificate, number `i` of its text, is not valid at this time, if it is not.
fn not_valid(i: usize, der: &CertificateDer<'_>, now: ASN1Time) -> Option<String> {
    let certificate = X509Certificate::from_der(der).ok()?.1;
    let validity = certificate.validity();
    let when = match (now < validity.not_before, now > validity.not_after) {
        (true, _) => format!("is valid from {} only", validity.not_before),
        (_, true) => format!("has expired at {}", validity.not_after),
        (false, false) => return None,
    };
    Some(format!("certificate {} of it {when}, and it is {now}", i + 1))
}

/// Whether a client can connect with these PEM texts: the authorities of the server, and its own
/// certificate and key for mutual TLS.
///
/// # Errors
/// The first that cannot be used, and why.
pub fn check_client_tls(authorities: &[u8], identity: Option<(&[u8], &[u8])>) -> Result<(), TlsError> {
    let part = TlsPart::ServerAuthorities;
    let mut roots = rustls::RootCertStore::empty();
    // Bundles of a system may hold some that are not usable.
    let list = certificates(authorities, part)?;
    let mut refused = list.into_iter().filter_map(|authority| roots.add(authority).err());
    let first = refused.next();
    refused.for_each(drop);
    if let (true, Some(why)) = (roots.is_empty(), first) {
        let reason = format!("none of its certificates is a valid X.509 certificate (the first: {why})");
        return Err(TlsError { part, reason });
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    match identity {
        Some((certificate, key)) => check_identity(certificate, key, Side::Client, &provider),
        None => Ok(()),
    }
}

/// Who shows a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Server,
    Client,
}

/// Keys with which ring signs.
const SUPPORTED_KEYS: &str = "RSA with 2048 to 4096 bits, ECDSA with P-256 or P-384, and Ed25519";

/// Checks a certificate with those between it and its authority, and its key.
fn check_identity(certificate: &[u8], key: &[u8], side: Side, provider: &Arc<CryptoProvider>) -> Result<(), TlsError> {
    let chain = certificates(certificate, TlsPart::Certificate)?;
    check_chain(&chain, side)?;
    let wrong_key = |reason: String| TlsError {
        part: TlsPart::Key,
        reason,
    };
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| wrong_key(why_no_key(&error, key)))?;
    let signing = provider.key_provider.load_private_key(key.clone_key());
    signing.map_err(|_| {
        wrong_key(format!(
            "it is damaged, or of a kind that is not supported; supported are {SUPPORTED_KEYS}"
        ))
    })?;
    let builder = ServerConfig::builder_with_provider(Arc::clone(provider)).with_safe_default_protocol_versions();
    let builder = builder.map_err(|e| wrong_key(e.to_string()))?.with_no_client_auth();
    let built = builder.with_single_cert(chain, key).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => {
            wrong_key("it is not the key of the certificate, or the certificate is damaged".to_owned())
        }
        rustls::Error::InvalidCertificate(why) => TlsError {
            part: TlsPart::Certificate,
            reason: format!("certificate 1 of it is not a valid X.509 certificate ({why})"),
        },
        error => wrong_key(error.to_string()),
    });
    built.map(drop)
}

/// Checks that all are X.509 certificates, and that the first may be that of this side.
fn check_chain(chain: &[CertificateDer<'_>], side: Side) -> Result<(), TlsError> {
    let wrong = |reason| TlsError {
        part: TlsPart::Certificate,
        reason,
    };
    for (i, der) in chain.iter().enumerate() {
        let usage = usage(der).map_err(|why| wrong(format!("certificate {} of it {why}", i + 1)))?;
        let (is_listed, name) = match side {
            Side::Server => (usage.server, "serverAuth"),
            Side::Client => (usage.client, "clientAuth"),
        };
        if i == 0 && usage.version != X509Version::V3 {
            return Err(wrong(format!(
                "certificate 1 of it has version {}; expected version 3, the one with extensions",
                usage.version.0.saturating_add(1)
            )));
        }
        if i == 0 && !is_listed {
            return Err(wrong(format!(
                "certificate 1 of it may not be used for this: expected {name} in its extended key \
                 usage, or no such extension"
            )));
        }
    }
    Ok(())
}

/// What a certificate may be used for.
struct Usage {
    version: X509Version,
    server: bool,
    client: bool,
    authority: bool,
}

/// What a certificate may be used for, or why it is none.
fn usage(der: &CertificateDer<'_>) -> Result<Usage, String> {
    let (rest, certificate) =
        X509Certificate::from_der(der).map_err(|_| "is not a valid X.509 certificate".to_owned())?;
    if !rest.is_empty() {
        let count = rest.len();
        return Err(format!(
            "is not a valid X.509 certificate: {count} bytes follow its end"
        ));
    }
    let extended = certificate.extended_key_usage();
    let extended = extended.map_err(|_| "has an extended key usage that cannot be read".to_owned())?;
    let allows = |is_listed: bool, is_any: bool| is_listed || is_any;
    Ok(Usage {
        version: certificate.version(),
        server: extended
            .as_ref()
            .is_none_or(|e| allows(e.value.server_auth, e.value.any)),
        client: extended
            .as_ref()
            .is_none_or(|e| allows(e.value.client_auth, e.value.any)),
        // Extensions came with version 3. A certificate that signed itself is an anchor for itself.
        authority: certificate.is_ca()
            || certificate.version() != X509Version::V3
            || certificate.subject() == certificate.issuer(),
    })
}

fn check_authorities(pem: &[u8], provider: Arc<CryptoProvider>) -> Result<(), TlsError> {
    let part = TlsPart::ClientAuthorities;
    let wrong = |reason: String| TlsError { part, reason };
    let mut roots = rustls::RootCertStore::empty();
    for (i, authority) in certificates(pem, part)?.into_iter().enumerate() {
        let number = i + 1;
        let usage = usage(&authority).map_err(|why| wrong(format!("certificate {number} of it {why}")))?;
        if !usage.authority {
            return Err(wrong(format!(
                "certificate {number} of it is not that of an authority: expected basicConstraints with \
                 CA:TRUE, or a certificate that signed itself"
            )));
        }
        let added = roots.add(authority);
        added.map_err(|e| wrong(format!("certificate {number} of it: {e}")))?;
    }
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
    verifier.map(drop).map_err(|e| wrong(e.to_string()))
}

/// The certificates in a PEM text, of which there must be one at least.
fn certificates(pem: &[u8], part: TlsPart) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let list: Result<Vec<_>, PemError> = CertificateDer::pem_slice_iter(pem).collect();
    let reason = match list {
        Ok(list) if !list.is_empty() => return Ok(list),
        Ok(_) => "it holds no certificate in PEM (BEGIN CERTIFICATE)".to_owned(),
        Err(error) => why_no_pem(&error, pem),
    };
    Err(TlsError { part, reason })
}

/// Why a text holds no private key.
fn why_no_key(error: &PemError, pem: &[u8]) -> String {
    let is_encrypted = String::from_utf8_lossy(pem).contains("ENCRYPTED");
    match error {
        _ if is_encrypted => "it holds an encrypted private key; expected one without a password \
             (`openssl pkey -in FILE -out NEW_FILE`)"
            .to_owned(),
        PemError::NoItemsFound => "it holds no private key in PEM (BEGIN … PRIVATE KEY)".to_owned(),
        error => why_no_pem(error, pem),
    }
}

/// Why a text is not PEM (RFC 7468), with its line where that is known.
fn why_no_pem(error: &PemError, pem: &[u8]) -> String {
    let shown = |line: &[u8]| match line.len() {
        0..=80 => format!("`{}`", line.escape_ascii()),
        _ => format!("`{}…`", line[..80].escape_ascii()),
    };
    match error {
        PemError::MissingSectionEnd { end_marker } => {
            format!("its line `-----END {}-----` is missing", end_marker.escape_ascii())
        }
        PemError::IllegalSectionStart { line } => format!("expected `-----BEGIN …-----`, found {}", shown(line)),
        PemError::Base64Decode(_) => why_no_base64(pem),
        error => error.to_string(),
    }
}

/// The first character between BEGIN and END that does not belong to base64; without one, it is the
/// padding that is wrong.
fn why_no_base64(pem: &[u8]) -> String {
    let belongs = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte) || byte.is_ascii_whitespace();
    let mut is_inside = false;
    for (i, line) in pem.split(|byte| *byte == b'\n').enumerate() {
        if line.starts_with(b"-----") {
            is_inside = line.starts_with(b"-----BEGIN");
        } else if let Some(byte) = line.iter().copied().find(|byte| is_inside && !belongs(*byte)) {
            let found = byte.escape_ascii();
            return format!(
                "expected base64 between its BEGIN and END, found `{found}` in line {}",
                i + 1
            );
        }
    }
    "the base64 between its BEGIN and END has wrong padding: characters are missing, or `=` stands \
     in the wrong place"
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_authority_of_a_client_may_be_the_client_s_own_certificate() {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let checked = |pem: &[u8]| check_authorities(pem, Arc::clone(&provider));
        let own = include_bytes!("../tests/shared/tls/signed_itself.pem");
        assert_eq!(checked(own), Ok(()));
        let issued = include_bytes!("../tests/shared/tls/server.pem");
        let refused = checked(issued).unwrap_err();
        assert!(
            refused.reason.contains("expected basicConstraints with CA:TRUE"),
            "{refused}"
        );
    }

    #[test]
    fn texts_that_are_not_pem_are_refused_in_words() {
        let pem = include_str!("../tests/shared/tls/ca.pem");
        let reason = |text: &str| {
            certificates(text.as_bytes(), TlsPart::ClientAuthorities)
                .unwrap_err()
                .reason
        };
        let (head, _) = pem.split_once("-----END").unwrap();
        assert_eq!(reason(head), "its line `-----END CERTIFICATE-----` is missing");
        let begin = reason(&pem.replacen("-----BEGIN CERTIFICATE-----", "-----BEGIN CERT", 1));
        assert_eq!(begin, "expected `-----BEGIN …-----`, found `-----BEGIN CERT`");
        let damaged = reason(&pem.replacen("CERTIFICATE-----\nM", "CERTIFICATE-----\n*", 1));
        assert_eq!(
            damaged,
            "expected base64 between its BEGIN and END, found `*` in line 2"
        );
        let cut = reason("-----BEGIN CERTIFICATE-----\nAA=A\n-----END CERTIFICATE-----\n");
        assert!(cut.contains("has wrong padding"), "{cut}");
    }

    #[test]
    fn certificates_that_have_expired_or_are_not_valid_yet_are_found() {
        let pem = include_bytes!("../tests/shared/tls/ca.pem").to_vec();
        let tls = Tls {
            certificate: pem.clone(),
            key: Vec::new(),
            client_authorities: Some(pem.clone()),
        };
        let der = &certificates(&pem, TlsPart::Certificate).unwrap()[0];
        let validity = X509Certificate::from_der(der).unwrap().1.validity().clone();
        let at = |seconds: i64| {
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds as u64);
            let found = tls.out_of_date(time);
            found.iter().map(OutOfDate::to_string).collect::<Vec<_>>()
        };
        let (first, last) = (validity.not_before.timestamp(), validity.not_after.timestamp());
        assert!(at(first).is_empty() && at(last).is_empty());
        let early = at(first - 1);
        assert_eq!(early.len(), 2);
        assert!(early[0].starts_with("the certificate: certificate 1 of it is valid from"));
        assert!(early[0].ends_with("; clients will refuse it"));
        let late = at(last + 1);
        assert!(late[1].starts_with("the clients' authorities: certificate 1 of it has expired at"));
        assert!(late[1].ends_with("; clients of it are still let in"));
    }
}
