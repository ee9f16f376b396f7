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
}

impl fmt::Display for TlsPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TlsPart::Certificate => "the certificate",
            TlsPart::Key => "the private key",
            TlsPart::ClientAuthorities => "the clients' authorities",
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
        write!(f, "{} will be refused: {}", self.part, self.first)?;
        match self.others {
            0 => Ok(()),
            others => write!(f, "; so with {others} others"),
        }
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
        let chain = certificates(&self.certificate, TlsPart::Certificate)?;
        let wrong_key = |reason: String| TlsError {
            part: TlsPart::Key,
            reason,
        };
        let key = PrivateKeyDer::from_pem_slice(&self.key).map_err(|error| {
            wrong_key(match error {
                PemError::NoItemsFound => {
                    "it holds no private key in PEM (BEGIN … PRIVATE KEY), or an encrypted one".to_owned()
                }
                error => why_no_pem(&error),
            })
        })?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
        let builder = builder.map_err(|e| wrong_key(e.to_string()))?.with_no_client_auth();
        builder.with_single_cert(chain, key).map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => wrong_key("it is not the key of the certificate".to_owned()),
            rustls::Error::InvalidCertificate(why) => TlsError {
                part: TlsPart::Certificate,
                reason: format!("it is not a valid X.509 certificate ({why})"),
            },
            error => wrong_key(error.to_string()),
        })?;
        match &self.client_authorities {
            Some(pem) => check_authorities(pem, provider),
            None => Ok(()),
        }
    }

    /// Texts with certificates that are not valid at this time: clients refuse such a server, and
    /// the server refuses clients of such an authority. A wrong clock looks the same, so this is no
    /// error.
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

fn check_authorities(pem: &[u8], provider: Arc<CryptoProvider>) -> Result<(), TlsError> {
    let part = TlsPart::ClientAuthorities;
    let wrong = |reason: String| TlsError { part, reason };
    let mut roots = rustls::RootCertStore::empty();
    for (number, authority) in certificates(pem, part)?.into_iter().enumerate() {
        let added = roots.add(authority);
        added.map_err(|e| wrong(format!("certificate {} of it: {e}", number + 1)))?;
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
        Err(error) => why_no_pem(&error),
    };
    Err(TlsError { part, reason })
}

/// Why a text is not PEM (RFC 7468), with its line where that is known.
fn why_no_pem(error: &PemError) -> String {
    let shown = |line: &[u8]| match line.len() {
        0..=80 => format!("`{}`", line.escape_ascii()),
        _ => format!("`{}…`", line[..80].escape_ascii()),
    };
    match error {
        PemError::MissingSectionEnd { end_marker } => {
            format!("its line `-----END {}-----` is missing", end_marker.escape_ascii())
        }
        PemError::IllegalSectionStart { line } => {
            format!(
                "its line {} does not begin a PEM section as `-----BEGIN …-----` does",
                shown(line)
            )
        }
        PemError::Base64Decode(why) => format!("what stands between its BEGIN and END is not base64 ({why})"),
        error => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

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
        assert!(
            begin.contains("its line `-----BEGIN CERT` does not begin a PEM section"),
            "{begin}"
        );
        let damaged = reason(&pem.replacen("CERTIFICATE-----\nM", "CERTIFICATE-----\n*", 1));
        assert!(damaged.contains("is not base64"), "{damaged}");
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
        assert!(early[0].starts_with("the certificate will be refused: certificate 1 of it is valid from"));
        let late = at(last + 1);
        assert!(late[1].contains("the clients' authorities will be refused: certificate 1 of it has expired at"));
    }
}
