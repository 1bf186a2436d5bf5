//! The Jenkins tools against a simulated server at the HTTP border: real client, real permits, real schemas, every request
//! recorded, and effects counted where they land.

#[cfg(test)]
mod faults;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod log;
#[cfg(test)]
mod read;
#[cfg(test)]
mod replay;
#[cfg(test)]
mod requests;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod servers;
#[cfg(test)]
mod stop;
#[cfg(test)]
mod trigger;
#[cfg(test)]
mod update;
#[cfg(test)]
mod world;
