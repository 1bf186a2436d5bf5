//! A line to a server on this machine: it can be led elsewhere, as a name is after a failover, held, and cut.
//!
//! What is held is lost when the line is cut. That is how a replica is made to miss what its primary has told it: a frozen
//! process would still find it in its socket when it thaws.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// A line that leads to a port of this machine.
pub struct Line {
    address: SocketAddr,
    state: Arc<State>,
    /// Ends with the line, and every connection with it.
    _serving: JoinSet<()>,
}

struct State {
    target: AtomicU16,
    held: watch::Sender<bool>,
    /// Counts the cuts; a connection lives through none.
    cuts: watch::Sender<u64>,
}

impl Line {
    /// A line to this port.
    pub async fn to(port: u16) -> Line {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port should be free");
        let address = listener.local_addr().expect("a bound port is known");
        let (held, cuts) = (watch::Sender::new(false), watch::Sender::new(0));
        let state = Arc::new(State { target: AtomicU16::new(port), held, cuts });
        let carried = Arc::clone(&state);
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((near, _)) = listener.accept().await {
                connections.spawn(carry(near, Arc::clone(&carried)));
            }
        });
        Line { address, state, _serving: serving }
    }

    /// The port it begins at.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// New connections lead to this port from now on; those there are stay.
    pub fn lead_to(&self, port: u16) {
        self.state.target.store(port, Ordering::SeqCst);
    }

    /// Nothing passes any more, and nobody is told.
    pub fn hold(&self) {
        self.state.held.send_replace(true);
    }

    /// Everything passes again.
    pub fn release(&self) {
        self.state.held.send_replace(false);
    }

    /// Ends every connection there is, with all that was held.
    pub fn cut(&self) {
        self.state.cuts.send_modify(|cuts| *cuts += 1);
    }
}

async fn carry(near: TcpStream, state: Arc<State>) {
    let mut cuts = state.cuts.subscribe();
    let Ok(far) = TcpStream::connect((Ipv4Addr::LOCALHOST, state.target.load(Ordering::SeqCst))).await else { return };
    let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
    tokio::select! {
        () = pass(near_in, far_out, state.held.subscribe()) => {}
        () = pass(far_in, near_out, state.held.subscribe()) => {}
        _ = cuts.changed() => {}
    }
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut held: watch::Receiver<bool>) {
    let mut bytes = vec![0; 16 * 1024];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        if held.wait_for(|held| !held).await.is_err() || to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}
