//! The way to the target.

use super::Connection;
use anyhow::{Result, anyhow, bail};
use std::path::Path;
use weir_client::{Client, Error, Options, Standing, Tls};
use weir_server::{TlsPart, check_client_tls};

/// The options that the command line and the environment say.
pub fn options(connection: &Connection) -> Result<Options> {
    let mut options = match (&connection.p4runtime, &connection.bfrt) {
        (Some(address), _) => Options::p4runtime(address)?,
        (None, Some(address)) => Options::bfrt(address)?,
        (None, None) => from_environment()?,
    };
    options = options
        .device(connection.device_id)
        .election(connection.election_id)
        .role(&connection.role)
        // Two of us at the same time are two clients.
        .client(
            connection
                .client_id
                .unwrap_or_else(|| 0x1_0000 + std::process::id() % 0x1_0000),
        )
        .deadline(connection.timeout)
        .reconnect(None);
    if let Some(program) = &connection.program {
        options = options.program(program);
    }
    if let Some(authorities) = &connection.tls_ca {
        options = options.tls(tls(connection, authorities)?);
    }
    Ok(options)
}

fn from_environment() -> Result<Options> {
    let Ok(target) = std::env::var("WEIR_TARGET") else {
        return Ok(Options::p4runtime("127.0.0.1")?);
    };
    match target.split_once(':') {
        Some(("p4runtime", address)) => Ok(Options::p4runtime(address)?),
        Some(("bfrt", address)) => Ok(Options::bfrt(address)?),
        _ => bail!("WEIR_TARGET is `{target}`; it should be p4runtime:ADDR or bfrt:ADDR"),
    }
}

/// The files of certificates and keys. They are checked here, because errors of the connection do
/// not name the file.
fn tls(connection: &Connection, authorities: &Path) -> Result<Tls> {
    let read = |path| crate::input::pem(path, weir_files::Readable::Open);
    let files = connection.tls_cert.as_deref().zip(connection.tls_key.as_deref());
    let identity = files
        .map(|(certificate, key)| Ok::<_, anyhow::Error>((read(certificate)?, read(key)?)))
        .transpose()?;
    let tls = Tls {
        authorities: read(authorities)?,
        domain: connection.tls_name.clone(),
        identity,
    };
    let identity = tls.identity.as_ref().map(|(c, k)| (c.as_slice(), k.as_slice()));
    check_client_tls(&tls.authorities, identity).map_err(|error| match (error.part, files) {
        (TlsPart::Key, Some((certificate, key))) => {
            anyhow!("{}: {error} (certificate: {})", key.display(), certificate.display())
        }
        (TlsPart::Certificate, Some((certificate, _))) => anyhow!("{}: {error}", certificate.display()),
        (TlsPart::Key | TlsPart::Certificate, None) | (TlsPart::ClientAuthorities | TlsPart::ServerAuthorities, _) => {
            anyhow!("{}: {error}", authorities.display())
        }
    })?;
    Ok(tls)
}

/// A client that reads. It disturbs no controller.
pub async fn reader(connection: &Connection) -> Result<Client> {
    Ok(Client::connect(options(connection)?.observer()).await?)
}

/// A client that writes: of P4Runtime the primary. BF Runtime lets every client write that
/// binds to the program.
pub async fn writer(connection: &Connection) -> Result<Client> {
    let options = options(connection)?;
    if options.protocol == weir_client::Protocol::BfRuntime {
        return Ok(Client::connect(options.observer()).await?);
    }
    listener(connection).await
}

/// A client that hears what the target tells.
pub async fn listener(connection: &Connection) -> Result<Client> {
    let client = Client::connect(options(connection)?).await?;
    check_control(&client)?;
    Ok(client)
}

/// Whether a client may write.
///
/// # Errors
/// Another one controls the target.
pub fn check_control(client: &Client) -> Result<()> {
    if let Standing::Backup(id) = client.standing() {
        let who = id.map_or_else(String::new, |id| format!(" (its election id is {id})"));
        bail!("another controller controls the target{who}: with a larger --election-id we take over");
    }
    Ok(())
}

/// 0, or 1 with what the target says on stderr. What is no answer of the target stays an error.
pub fn answer(result: Result<(), Error>) -> Result<u8> {
    match result {
        Ok(()) => Ok(0),
        Err(error @ (Error::Updates(_) | Error::Rpc { .. })) => {
            crate::output::message(format!("error: {error}"));
            Ok(1)
        }
        Err(error) => Err(error.into()),
    }
}
