//! A collector: it takes OTLP over gRPC and over HTTP from anybody and keeps the bytes, to be searched and to be read.
//!
//! Just enough HTTP and protobuf, by hand, to make an exporter content: every request is answered with success. A
//! planted text is found as it stands, since exporters send protobuf unpacked.

use std::collections::{BTreeMap, HashMap};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

const PREFACE: usize = 24;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
/// `ACK` of settings and pings, `END_STREAM` of data and headers.
const DONE: u8 = 0x1;
const END_HEADERS: u8 = 0x4;
/// `:status: 200` and `content-type: application/grpc`, then the trailer `grpc-status: 0`, as HPACK spells them.
const BEGINNING: &[u8] = b"\x88\x0f\x10\x10application/grpc";
const ENDING: &[u8] = b"\x00\x0bgrpc-status\x010";
/// A message of no length.
const EMPTY: &[u8] = &[0; 5];

/// A collector that listens until it is dropped.
pub struct Collector {
    address: SocketAddr,
    taken: Arc<Mutex<Vec<Vec<u8>>>>,
    heads: Arc<Mutex<Vec<Vec<u8>>>>,
    _serving: JoinSet<()>,
}

/// A span as it arrived. Ids are in hexadecimal digits, and every value is text.
#[derive(Debug, Clone, Default)]
pub struct CollectedSpan {
    /// Which trace it is in.
    pub trace: String,
    /// Which span it is.
    pub id: String,
    /// Empty for the first span of a trace.
    pub parent: String,
    /// Its name.
    pub name: String,
    /// As OTLP counts them: 1 internal, 2 server, 3 client.
    pub kind: u64,
    /// Its attributes.
    pub attributes: BTreeMap<String, String>,
    /// Whether its status is an error.
    pub failed: bool,
    /// Trace, span and attributes of each.
    pub links: Vec<(String, String, BTreeMap<String, String>)>,
}

impl Collector {
    /// Starts one.
    pub async fn start() -> Collector {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port should be free");
        let address = listener.local_addr().expect("a bound port is known");
        let taken = Arc::<Mutex<Vec<Vec<u8>>>>::default();
        let heads = Arc::<Mutex<Vec<Vec<u8>>>>::default();
        let (kept, seen, mut serving) = (Arc::clone(&taken), Arc::clone(&heads), JoinSet::new());
        serving.spawn(async move {
            let mut exporters = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                exporters.spawn(serve(stream, Arc::clone(&kept), Arc::clone(&seen)));
            }
        });
        Collector { address, taken, heads, _serving: serving }
    }

    /// Where exporters send to.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Everything that was sent so far, protobuf as it came.
    pub fn taken(&self) -> Vec<u8> {
        locked(&self.taken).concat()
    }

    /// The heads of the requests that came over HTTP.
    pub fn heads(&self) -> Vec<String> {
        locked(&self.heads).iter().map(|head| String::from_utf8_lossy(head).into_owned()).collect()
    }

    /// The spans that were sent so far.
    pub fn spans(&self) -> Vec<CollectedSpan> {
        self.items().iter().filter(|item| kind_of(item) == ItemKind::Span).map(|span| span_of(span)).collect()
    }

    /// The metrics that were sent so far, each as often as it was.
    pub fn metrics(&self) -> Vec<CollectedMetric> {
        self.items().iter().filter(|item| kind_of(item) == ItemKind::Metric).map(|metric| metric_of(metric)).collect()
    }

    /// The log lines that were sent so far.
    pub fn logs(&self) -> Vec<CollectedLog> {
        self.items().iter().filter(|item| kind_of(item) == ItemKind::Log).map(|log| log_of(log)).collect()
    }

    /// What everything was sent in the name of.
    pub fn resource(&self) -> BTreeMap<String, String> {
        let requests: Vec<Vec<u8>> =
            locked(&self.taken).iter().filter_map(|request| Some(request.get(5..)?.to_vec())).collect();
        let within = |messages: &[Vec<u8>], number: u64| -> Vec<Vec<u8>> {
            let all = messages.iter().flat_map(|message| fields(message));
            all.filter(|(n, _)| *n == number).map(|(_, value)| value.bytes()).collect()
        };
        within(&within(&within(&requests, 1), 1), 1).iter().map(|pair| attribute(pair)).collect()
    }

    /// Spans, metrics and log lines stand at the same depth of their messages.
    fn items(&self) -> Vec<Vec<u8>> {
        // A message of gRPC stands behind a flag and four bytes of length.
        let requests = locked(&self.taken).iter().filter_map(|request| Some(request.get(5..)?.to_vec())).collect();
        let within = |messages: Vec<Vec<u8>>, number: u64| -> Vec<Vec<u8>> {
            messages
                .iter()
                .flat_map(|message| fields(message))
                .filter(|(n, _)| *n == number)
                .map(|(_, f)| f.bytes())
                .collect()
        };
        let resources = within(requests, 1);
        let scopes = within(resources, 2);
        within(scopes, 2)
    }
}

/// A metric as it arrived.
#[derive(Debug, Clone, Default)]
pub struct CollectedMetric {
    /// Its name.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// `gauge`, `sum` or `histogram`.
    pub kind: &'static str,
    /// The attributes of each of its series.
    pub series: Vec<BTreeMap<String, String>>,
}

/// A log line as it arrived.
#[derive(Debug, Clone, Default)]
pub struct CollectedLog {
    /// `INFO` and so on.
    pub severity: String,
    /// What it says.
    pub body: String,
    /// What else it says.
    pub attributes: BTreeMap<String, String>,
    /// The trace it was written in; empty outside of every trace.
    pub trace: String,
    /// The span it was written in.
    pub span: String,
}

#[derive(PartialEq)]
enum ItemKind {
    Span,
    Metric,
    Log,
}

/// The three begin differently: with two ids, with a time and a number, and with two texts.
fn kind_of(item: &[u8]) -> ItemKind {
    let first = |number: u64| fields(item).into_iter().find(|(n, _)| *n == number).map(|(_, value)| value);
    match (first(1), first(2)) {
        (Some(WireValue::Bytes(one)), Some(WireValue::Bytes(two))) if (one.len(), two.len()) == (16, 8) => {
            ItemKind::Span
        }
        (Some(WireValue::Bytes(one)), Some(WireValue::Number(_))) if one.len() == 8 => ItemKind::Log,
        _ => ItemKind::Metric,
    }
}

/// The value of a field: a number, or bytes.
enum WireValue {
    Number(u64),
    Bytes(Vec<u8>),
}

impl WireValue {
    fn bytes(self) -> Vec<u8> {
        match self {
            WireValue::Bytes(bytes) => bytes,
            WireValue::Number(_) => Vec::new(),
        }
    }

    fn text(self) -> String {
        match self {
            WireValue::Bytes(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            WireValue::Number(number) => number.to_string(),
        }
    }

    fn hex(self) -> String {
        self.bytes().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The fields of a protobuf message, with their numbers.
fn fields(mut message: &[u8]) -> Vec<(u64, WireValue)> {
    let mut fields = Vec::new();
    while !message.is_empty() {
        let key = varint(&mut message);
        let value = match key & 7 {
            0 => WireValue::Number(varint(&mut message)),
            1 => WireValue::Bytes(cut(&mut message, 8)),
            2 => {
                let length = usize::try_from(varint(&mut message)).expect("a length fits");
                WireValue::Bytes(cut(&mut message, length))
            }
            5 => WireValue::Bytes(cut(&mut message, 4)),
            other => panic!("no wire type {other} is in use"),
        };
        fields.push((key >> 3, value));
    }
    fields
}

fn varint(message: &mut &[u8]) -> u64 {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = cut(message, 1)[0];
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    number
}

fn cut(message: &mut &[u8], length: usize) -> Vec<u8> {
    let (front, rest) = message.split_at(length);
    *message = rest;
    front.to_vec()
}

fn span_of(message: &[u8]) -> CollectedSpan {
    let mut span = CollectedSpan::default();
    for (number, value) in fields(message) {
        match number {
            1 => span.trace = value.hex(),
            2 => span.id = value.hex(),
            4 => span.parent = value.hex(),
            5 => span.name = value.text(),
            6 => span.kind = value.text().parse().expect("a kind is a number"),
            9 => span.attributes.extend([attribute(&value.bytes())]),
            13 => span.links.push(link_of(&value.bytes())),
            // The third field of a status is its code, and 2 is the one of errors.
            15 => span.failed = fields(&value.bytes()).into_iter().any(|(n, code)| n == 3 && code.text() == "2"),
            _ => {}
        }
    }
    span
}

fn metric_of(message: &[u8]) -> CollectedMetric {
    let mut metric = CollectedMetric::default();
    for (number, value) in fields(message) {
        let (kind, attributes) = match number {
            1 => {
                metric.name = value.text();
                continue;
            }
            3 => {
                metric.unit = value.text();
                continue;
            }
            5 => ("gauge", 7),
            7 => ("sum", 7),
            9 => ("histogram", 9),
            _ => continue,
        };
        metric.kind = kind;
        let points = fields(&value.bytes()).into_iter().filter(|(number, _)| *number == 1);
        metric.series.extend(points.map(|(_, point)| {
            let pairs = fields(&point.bytes()).into_iter().filter(|(number, _)| *number == attributes);
            pairs.map(|(_, pair)| attribute(&pair.bytes())).collect::<BTreeMap<_, _>>()
        }));
    }
    metric
}

fn log_of(message: &[u8]) -> CollectedLog {
    let mut log = CollectedLog::default();
    for (number, value) in fields(message) {
        match number {
            3 => log.severity = value.text(),
            5 => log.body = fields(&value.bytes()).into_iter().map(|(_, value)| value.text()).collect(),
            6 => log.attributes.extend([attribute(&value.bytes())]),
            9 => log.trace = value.hex(),
            10 => log.span = value.hex(),
            _ => {}
        }
    }
    log
}

fn link_of(message: &[u8]) -> (String, String, BTreeMap<String, String>) {
    let mut link = (String::new(), String::new(), BTreeMap::new());
    for (number, value) in fields(message) {
        match number {
            1 => link.0 = value.hex(),
            2 => link.1 = value.hex(),
            4 => link.2.extend([attribute(&value.bytes())]),
            _ => {}
        }
    }
    link
}

/// A value as text. The fourth kind is a number with a fraction.
fn scalar((kind, value): (u64, WireValue)) -> String {
    match (kind, value) {
        (4, WireValue::Bytes(bytes)) => f64::from_le_bytes(bytes.try_into().expect("eight bytes")).to_string(),
        (_, value) => value.text(),
    }
}

fn attribute(message: &[u8]) -> (String, String) {
    let mut pair = (String::new(), String::new());
    for (number, value) in fields(message) {
        match number {
            1 => pair.0 = value.text(),
            // One of several: text, a truth, a number.
            2 => pair.1 = fields(&value.bytes()).into_iter().map(scalar).collect(),
            _ => {}
        }
    }
    pair
}

fn locked(taken: &Mutex<Vec<Vec<u8>>>) -> MutexGuard<'_, Vec<Vec<u8>>> {
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One connection, of whichever kind.
async fn serve(
    mut stream: TcpStream,
    taken: Arc<Mutex<Vec<Vec<u8>>>>,
    heads: Arc<Mutex<Vec<Vec<u8>>>>,
) -> std::io::Result<()> {
    let mut first = [0; 4];
    stream.read_exact(&mut first).await?;
    match &first {
        b"POST" | b"PUT " => posted(stream, first, taken, heads).await,
        _ => framed(stream, taken).await,
    }
}

/// A connection of HTTP/1.1, until the exporter leaves. Bodies are kept as gRPC frames them.
async fn posted(
    mut stream: TcpStream,
    first: [u8; 4],
    taken: Arc<Mutex<Vec<Vec<u8>>>>,
    heads: Arc<Mutex<Vec<Vec<u8>>>>,
) -> std::io::Result<()> {
    let mut head = first.to_vec();
    loop {
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await?);
        }
        let text = String::from_utf8_lossy(&head).to_lowercase();
        let length = text.lines().find_map(|line| line.strip_prefix("content-length:")).map(str::trim);
        let length: usize = length.and_then(|length| length.parse().ok()).expect("a body has a length");
        let mut body = EMPTY.to_vec();
        body.resize(EMPTY.len() + length, 0);
        stream.read_exact(&mut body[EMPTY.len()..]).await?;
        locked(&heads).push(std::mem::take(&mut head));
        locked(&taken).push(body);
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await?;
    }
}

/// A connection of HTTP/2, until the exporter leaves or says something that is no frame.
async fn framed(mut stream: TcpStream, taken: Arc<Mutex<Vec<Vec<u8>>>>) -> std::io::Result<()> {
    let mut bodies: HashMap<u32, Vec<u8>> = HashMap::new();
    stream.read_exact(&mut [0; PREFACE - 4]).await?;
    stream.write_all(&frame(SETTINGS, 0, 0, &[])).await?;
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await?;
        let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        let (kind, flags) = (head[3], head[4]);
        let id = u32::from_be_bytes([head[5] & 0x7f, head[6], head[7], head[8]]);
        let mut payload = vec![0; length];
        stream.read_exact(&mut payload).await?;
        let mut answer = Vec::new();
        match kind {
            SETTINGS if flags & DONE == 0 => answer = frame(SETTINGS, DONE, 0, &[]),
            PING if flags & DONE == 0 => answer = frame(PING, DONE, 0, &payload),
            DATA => {
                bodies.entry(id).or_default().extend_from_slice(&payload);
                // What was taken may be sent again, on this stream and on the connection.
                let room = (length as u32).max(1).to_be_bytes();
                answer.extend(frame(WINDOW_UPDATE, 0, 0, &room));
                answer.extend(frame(WINDOW_UPDATE, 0, id, &room));
                if flags & DONE != 0 {
                    locked(&taken).extend(bodies.remove(&id));
                    answer.extend(frame(HEADERS, END_HEADERS, id, BEGINNING));
                    answer.extend(frame(DATA, 0, id, EMPTY));
                    answer.extend(frame(HEADERS, END_HEADERS | DONE, id, ENDING));
                }
            }
            _ => {}
        }
        stream.write_all(&answer).await?;
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags];
    frame.extend(stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_read_as_it_was_sent() {
        let bytes = |number: u8, value: &[u8]| [&[number << 3 | 2, value.len() as u8][..], value].concat();
        let pair = [bytes(1, b"k"), bytes(2, &bytes(1, b"v"))].concat();
        let link = [bytes(1, &[7; 16]), bytes(2, &[8; 8]), bytes(4, &pair)].concat();
        let message = [
            bytes(1, &[1; 16]),
            bytes(2, &[2; 8]),
            bytes(5, b"GET /x"),
            vec![6 << 3, 3],
            bytes(9, &pair),
            bytes(13, &link),
            vec![7 << 3 | 1, 0, 0, 0, 0, 0, 0, 0, 0],
        ];
        let span = span_of(&message.concat());
        assert_eq!(
            (span.trace.as_str(), span.id.as_str(), span.parent.as_str()),
            (&*"01".repeat(16), &*"02".repeat(8), "")
        );
        assert_eq!((span.name.as_str(), span.kind, span.attributes["k"].as_str()), ("GET /x", 3, "v"));
        assert_eq!((span.links[0].1.as_str(), span.links[0].2["k"].as_str()), (&*"08".repeat(8), "v"));
    }

    #[tokio::test]
    async fn what_is_posted_is_kept_too() {
        let collector = Collector::start().await;
        let mut stream = TcpStream::connect(collector.address).await.unwrap();
        stream.write_all(b"POST /v1/logs HTTP/1.1\r\nContent-Length: 7\r\n\r\nplanted").await.unwrap();
        let mut heard = Vec::new();
        while !heard.ends_with(b"\r\n\r\n") {
            assert_ne!(stream.read_buf(&mut heard).await.unwrap(), 0, "it should answer: {heard:?}");
        }
        assert!(collector.taken().ends_with(b"planted"));
        assert!(collector.heads()[0].starts_with("POST /v1/logs "));
    }

    #[tokio::test]
    async fn what_an_exporter_sends_is_kept_and_thanked_for() {
        let collector = Collector::start().await;
        let mut stream = TcpStream::connect(collector.address).await.unwrap();
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
        let sent =
            [frame(SETTINGS, 0, 0, &[]), frame(HEADERS, END_HEADERS, 1, b"\x83"), frame(DATA, DONE, 1, b"planted")];
        stream.write_all(&sent.concat()).await.unwrap();
        let mut heard = Vec::new();
        while !heard.ends_with(ENDING) {
            assert_ne!(stream.read_buf(&mut heard).await.unwrap(), 0, "it should answer: {heard:?}");
        }
        assert!(heard.windows(9).any(|nine| *nine == frame(SETTINGS, DONE, 0, &[])), "settings are acknowledged");
        assert_eq!(collector.taken(), b"planted");
    }
}
