//! Transport security, with keys that were made for tests.

use std::net::SocketAddr;
use tokio::net::TcpListener;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Identity};
use weir_server::Tls;

const CA: &str = include_str!("tls/ca.pem");
const OWN: (&str, &str) = (include_str!("tls/client.pem"), include_str!("tls/client.key"));

fn server(is_mutual: bool) -> Tls {
    Tls {
        certificate: include_bytes!("tls/server.pem").to_vec(),
        key: include_bytes!("tls/server.key").to_vec(),
        client_authorities: is_mutual.then(|| CA.as_bytes().to_vec()),
    }
}

/// A channel of a client with this identity, if the server lets it in.
async fn channel(address: SocketAddr, identity: Option<(&str, &str)>) -> Option<Channel> {
    let tls = ClientTlsConfig::new()
        .ca_certificate(Certificate::from_pem(CA))
        .domain_name("localhost");
    let tls = match identity {
        Some((certificate, key)) => tls.identity(Identity::from_pem(certificate, key)),
        None => tls,
    };
    let channel = Channel::from_shared(format!("https://{address}")).expect("a URI");
    channel.tls_config(tls).expect("certificates").connect().await.ok()
}

/// Checks who is answered by servers with TLS. `serve` starts one; `is_answered` asks it something,
/// as its clients do.
pub async fn clients_need_a_certificate(serve: impl Fn(Tls, TcpListener), is_answered: impl AsyncFn(Channel) -> bool) {
    for is_mutual in [false, true] {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        serve(server(is_mutual), listener);
        for (identity, may) in [(Some(OWN), true), (None, !is_mutual)] {
            let answered = match channel(address, identity).await {
                Some(channel) => is_answered(channel).await,
                None => false,
            };
            let known = identity.is_some();
            assert_eq!(answered, may, "mutual: {is_mutual}, with a certificate: {known}");
        }
        // Without TLS there is no answer.
        let plain = Channel::from_shared(format!("http://{address}")).expect("a URI");
        assert!(!is_answered(plain.connect_lazy()).await);
    }
}
