//! Secure connections.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

use super::{Connection, Failure, http2};
use crate::connect::Stream;
use crate::error::Error;

/// Makes connections secure, and speaks what the server prefers of HTTP/2 and HTTP/1.1.
pub(crate) struct Tls {
    connector: TlsConnector,
}

impl Tls {
    /// Trusts the authorities of the web, and those in a file if there is one.
    pub(crate) fn new(certificates: Option<&Path>) -> Result<Self, Error> {
        let mut roots = RootCertStore::empty();
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        if let Some(path) = certificates {
            add_file(&mut roots, path)?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the provider speaks TLS 1.2 and 1.3");
        let mut config = config.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let connector = TlsConnector::from(Arc::new(config));
        Ok(Self { connector })
    }

    /// Makes a connection to `name` secure.
    pub(super) async fn secure(
        &self,
        stream: Box<dyn Stream>,
        name: &str,
    ) -> Result<Connection, Failure> {
        let name = name.trim_matches(['[', ']']).to_owned();
        let name = ServerName::try_from(name).map_err(|_| Failure::Tls)?;
        let secured = self.connector.connect(name, stream).await;
        let secured = secured.map_err(|_| Failure::Tls)?;
        if secured.get_ref().1.alpn_protocol() == Some(b"h2") {
            return http2::Sender::new(secured).await.map(Connection::Http2);
        }
        Ok(Connection::Http1(Box::new(secured)))
    }
}

fn add_file(roots: &mut RootCertStore, path: &Path) -> Result<(), Error> {
    let bad = || Error::damaged(path, "it holds no certificates (PEM)");
    let certificates = CertificateDer::pem_file_iter(path).map_err(|_| bad())?;
    for certificate in certificates {
        let certificate = certificate.map_err(|_| bad())?;
        roots.add(certificate).map_err(|_| bad())?;
    }
    Ok(())
}
