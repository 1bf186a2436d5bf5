//! How a listener leaves: whoever got in is answered, whoever comes later is refused at once.
//!
//! Actix stops everything at the same time. A connection that waits to be accepted, that is on its way to a worker, or whose
//! request was not read yet then ends without an answer, and its client cannot tell whether something was done. So actix is
//! told to stop last:
//!
//! 1. Every answer says `Connection: close` ([`answer`]), so that busy connections end between two requests.
//! 2. The system begins no new connection, and those that it has begun are accepted ([`Doorway::close`]).
//! 3. The listener closes: from here on a client is refused, and tries another replica.
//! 4. Connections that were accepted and have asked for nothing get time to do so ([`Doorway::emptied`]).

use crate::app::Gateway;
use actix_web::dev::{Extensions, ServerHandle, Service, ServiceRequest, ServiceResponse};
use actix_web::http::ConnectionType;
use actix_web::web::Data;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::Socket;
use std::cell::Cell;
use std::net::{Shutdown, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long everybody is still taken in and answered. Within it a connection that is in constant use has got an answer that
/// ends it.
const MOMENT: Duration = Duration::from_millis(250);
/// How long a connection that the system has begun may take to be established. As long nobody who asks for one is heard, and
/// who is not heard loses a second; so it is short.
const HANDSHAKE: Duration = Duration::from_millis(20);
/// How often it is looked again. What was accepted is with its worker after less.
const STEP: Duration = Duration::from_millis(20);

/// A second handle on a listener that actix owns, and those of its connections that have asked for nothing yet.
pub(crate) struct Doorway {
    listener: Socket,
    newcomers: Newcomers,
}

impl Doorway {
    /// The doorway of this listener, which is handed to actix afterwards.
    pub(crate) fn of(listener: &TcpListener) -> std::io::Result<Doorway> {
        Ok(Doorway { listener: Socket::from(listener.try_clone()?), newcomers: Newcomers::default() })
    }

    /// Counts the connections of this listener.
    pub(crate) fn newcomers(&self) -> Newcomers {
        self.newcomers.clone()
    }

    /// Closes the listener when everybody who had begun to connect is in.
    pub(crate) async fn close(&self, server: &ServerHandle, within: Duration) {
        tokio::time::sleep(MOMENT).await;
        self.begin_no_more();
        tokio::time::sleep(HANDSHAKE).await;
        let until = Instant::now() + within;
        while self.somebody_waits() && Instant::now() < until {
            tokio::time::sleep(STEP).await;
        }
        // Actix takes a listener that was closed by somebody else for a broken one, unless it does not look at it.
        server.pause().await;
        tokio::time::sleep(STEP).await;
        if let Err(error) = self.listener.shutdown(Shutdown::Both) {
            tracing::debug!(%error, "a listener could not be closed early");
        }
    }

    /// Waits until every connection has asked for something, or is gone.
    pub(crate) async fn emptied(&self, within: Duration) {
        let until = Instant::now() + within;
        loop {
            // Before the first look too: who was accepted last is on the way to a worker, and is not counted there yet.
            tokio::time::sleep(STEP).await;
            if self.newcomers.0.load(Ordering::Relaxed) == 0 || Instant::now() >= until {
                return;
            }
        }
    }

    /// Drops the packets that ask for a connection. A listener that just closes resets whoever waits to be accepted; of these
    /// there are no more from now on, and who is not heard asks again after a second, when the listener is closed.
    #[cfg(target_os = "linux")]
    fn begin_no_more(&self) {
        use socket2::SockFilter;
        // A classic packet filter over the TCP header: SYN without ACK is dropped, everything else is let through.
        const FLAGS: u32 = 13;
        const SYN: u32 = 0x02;
        const SYN_AND_ACK: u32 = 0x12;
        let filter = [
            SockFilter::new(0x30, 0, 0, FLAGS),
            SockFilter::new(0x54, 0, 0, SYN_AND_ACK),
            SockFilter::new(0x15, 0, 1, SYN),
            SockFilter::new(0x06, 0, 0, 0),
            SockFilter::new(0x06, 0, 0, u32::MAX),
        ];
        // Where the system refuses it, a connection may be reset that comes in the instant the listener closes.
        if let Err(error) = self.listener.attach_filter(&filter) {
            tracing::debug!(%error, "the listener takes connections until it closes");
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn begin_no_more(&self) {}

    /// Whether a connection is established and not accepted.
    fn somebody_waits(&self) -> bool {
        let mut looked_at = [PollFd::new(&self.listener, PollFlags::IN)];
        poll(&mut looked_at, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }
}

/// How many connections of a listener have asked for nothing yet.
#[derive(Clone, Default)]
pub(crate) struct Newcomers(Arc<AtomicUsize>);

impl Newcomers {
    /// Counts a connection until it asks for something or ends.
    pub(crate) fn enter(&self, connection: &mut Extensions) {
        self.0.fetch_add(1, Ordering::Relaxed);
        connection.insert(Newcomer { all: self.clone(), waits: Cell::new(true) });
    }
}

/// A connection, as long as it is there.
struct Newcomer {
    all: Newcomers,
    waits: Cell<bool>,
}

impl Newcomer {
    fn has_asked(&self) {
        if self.waits.replace(false) {
            self.all.0.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Newcomer {
    fn drop(&mut self) {
        self.has_asked();
    }
}

/// Answers a request, and ends its connection with the answer if this process is leaving.
pub(crate) fn answer<S, B>(
    request: ServiceRequest,
    service: &S,
) -> impl Future<Output = Result<ServiceResponse<B>, actix_web::Error>> + use<S, B>
where
    S: Service<ServiceRequest, Response = ServiceResponse<B>, Error = actix_web::Error>,
{
    if let Some(newcomer) = request.conn_data::<Newcomer>() {
        newcomer.has_asked();
    }
    let answering = service.call(request);
    async move {
        let mut response = answering.await?;
        let gateway = response.request().app_data::<Data<Gateway>>();
        if gateway.is_some_and(|gateway| gateway.readiness.is_leaving()) {
            response.response_mut().head_mut().set_connection_type(ConnectionType::Close);
        }
        Ok(response)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use socket2::{Domain, Type};
    use std::io::ErrorKind;

    #[test]
    fn a_connection_counts_until_it_asks_or_ends() {
        let newcomers = Newcomers::default();
        let (mut first, mut second) = (Extensions::new(), Extensions::new());
        newcomers.enter(&mut first);
        newcomers.enter(&mut second);
        let count = || newcomers.0.load(Ordering::Relaxed);
        assert_eq!(count(), 2);
        first.get::<Newcomer>().unwrap().has_asked();
        first.get::<Newcomer>().unwrap().has_asked();
        assert_eq!(count(), 1);
        drop(first);
        drop(second);
        assert_eq!(count(), 0);
    }

    // On the loopback a handshake is over before `connect` comes back, so nothing here waits for anything.
    #[cfg(target_os = "linux")]
    #[test]
    fn who_waits_is_kept_and_nobody_new_is_begun() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let doorway = Doorway::of(&listener).unwrap();
        let connect = || {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            socket.set_nonblocking(true).unwrap();
            socket.connect(&address.into()).ok();
            socket
        };
        assert!(!doorway.somebody_waits());
        let before = connect();
        assert!(doorway.somebody_waits());

        doorway.begin_no_more();
        let _late = connect();
        let (_taken, peer) = listener.accept().expect("who came before should be kept");
        assert_eq!(Some(peer), before.local_addr().unwrap().as_socket());
        assert!(!doorway.somebody_waits());
        assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);

        doorway.listener.shutdown(Shutdown::Both).unwrap();
        let refused = std::net::TcpStream::connect(address).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    }
}
