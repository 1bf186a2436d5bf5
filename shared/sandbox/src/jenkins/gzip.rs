//! Just enough gzip to answer with it: blocks that are stored and not compressed.

/// The largest stored block.
const BLOCK: usize = 0xffff;

/// The bytes in a gzip envelope.
pub(super) fn packed(content: &[u8]) -> Vec<u8> {
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    let mut blocks = content.chunks(BLOCK).peekable();
    if content.is_empty() {
        out.extend([1, 0, 0, 0xff, 0xff]);
    }
    while let Some(block) = blocks.next() {
        let length = block.len() as u16;
        out.push(u8::from(blocks.peek().is_none()));
        out.extend(length.to_le_bytes());
        out.extend((!length).to_le_bytes());
        out.extend(block);
    }
    out.extend(checksum(content).to_le_bytes());
    out.extend((content.len() as u32).to_le_bytes());
    out
}

/// CRC-32 as gzip wants it, bit by bit: what is sent here is small.
fn checksum(content: &[u8]) -> u32 {
    let step = |sum: u32| if sum & 1 == 1 { (sum >> 1) ^ 0xedb8_8320 } else { sum >> 1 };
    !content.iter().fold(!0, |sum, byte| (0..8).fold(sum ^ u32::from(*byte), |sum, _| step(sum)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_known_one() {
        assert_eq!(checksum(b"123456789"), 0xcbf4_3926);
    }
}
