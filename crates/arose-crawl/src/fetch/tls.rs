//! TLS connections and the verification of certificates.
//!
//! A certificate is accepted if a public authority or one in the given file has signed it for the
//! host. A certificate that is itself in the file is accepted for the hosts that it names, whatever
//! its issuer: servers with self-signed certificates are trusted one by one. For the hosts listed
//! in the settings, every certificate is accepted.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use tokio_rustls::TlsConnector;

use super::{Connection, Failure, http2};
use crate::connect::Stream;
use crate::error::Error;
use crate::settings::Network;

/// Sets up TLS connections, and uses HTTP/2 or HTTP/1.1 as the server prefers.
pub(crate) struct Tls {
    connector: TlsConnector,
    /// For hosts whose certificates are not checked.
    lenient: TlsConnector,
    unchecked: BTreeSet<String>,
}

impl Tls {
    /// Trusts the public authorities, those in a file if there is one, and all certificates of the
    /// listed hosts.
    pub(crate) fn new(network: &Network) -> Result<Self, Error> {
        let mut roots = RootCertStore::empty();
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        let trusted = match &network.certificates {
            Some(path) => read_file(path)?,
            None => Vec::new(),
        };
        // A certificate that cannot be an authority may still be a server's own.
        roots.add_parsable_certificates(trusted.iter().cloned());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let authorities =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let authorities = authorities
            .build()
            .map_err(|error| Error::Settings(format!("no certificates to trust: {error}")))?;
        let connector = |checks| {
            let verifier = Verifier {
                authorities: Arc::clone(&authorities),
                trusted: trusted.clone(),
                checks,
            };
            connector(&provider, verifier)
        };
        Ok(Self {
            connector: connector(Checks::All),
            lenient: connector(Checks::None),
            unchecked: network.ignore_certificates.iter().cloned().collect(),
        })
    }

    /// Sets up TLS on a connection to `name`.
    pub(super) async fn secure(
        &self,
        stream: Box<dyn Stream>,
        name: &str,
    ) -> Result<Connection, Failure> {
        let name = name.trim_matches(['[', ']']);
        let connector = match self.unchecked.contains(name) {
            true => &self.lenient,
            false => &self.connector,
        };
        let name = ServerName::try_from(name.to_owned()).map_err(|_| Failure::Tls)?;
        let secured = connector.connect(name, stream).await;
        let secured = secured.map_err(|error| failure(&error))?;
        if secured.get_ref().1.alpn_protocol() == Some(b"h2") {
            return http2::Sender::new(secured).await.map(Connection::Http2);
        }
        Ok(Connection::Http1(Box::new(secured)))
    }
}

fn connector(provider: &Arc<rustls::crypto::CryptoProvider>, verifier: Verifier) -> TlsConnector {
    let config = ClientConfig::builder_with_provider(Arc::clone(provider))
        .with_safe_default_protocol_versions()
        .expect("the provider speaks TLS 1.2 and 1.3");
    let mut config = config
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    TlsConnector::from(Arc::new(config))
}

/// Returns why the TLS connection failed.
fn failure(error: &std::io::Error) -> Failure {
    let cause = error.get_ref().and_then(|inner| inner.downcast_ref());
    let Some(rustls::Error::InvalidCertificate(error)) = cause else {
        return Failure::Tls;
    };
    match error {
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => Failure::ExpiredCertificate,
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            Failure::OtherName
        }
        _ => Failure::UnknownIssuer,
    }
}

/// Which properties of certificates are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Checks {
    All,
    None,
}

/// Verifies certificates.
#[derive(Debug)]
struct Verifier {
    authorities: Arc<WebPkiServerVerifier>,
    /// Reads the certificates of a file.
    trusted: Vec<CertificateDer<'static>>,
    checks: Checks,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if self.checks == Checks::None {
            return Ok(ServerCertVerified::assertion());
        }
        if self.trusted.iter().any(|trusted| trusted == certificate) {
            verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
            return Ok(ServerCertVerified::assertion());
        }
        self.authorities
            .verify_server_cert(certificate, others, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.authorities
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.authorities
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
}

fn read_file(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let bad = || Error::damaged(path, "it has no certificates in PEM format");
    let certificates = CertificateDer::pem_file_iter(path).map_err(|_| bad())?;
    let certificates: Vec<_> = certificates.collect::<Result<_, _>>().map_err(|_| bad())?;
    match certificates.is_empty() {
        true => Err(bad()),
        false => Ok(certificates),
    }
}
