//! Random bits for names, drawn from the system by the kilobyte.
//!
//! A name is 16 bytes, and one question to the system per name is a noticeable part of a short call. So each thread keeps
//! a small stock. Bytes leave it once and are wiped where they lay. This process never forks, so no two stocks are alike.

use crate::StoreError;
use std::cell::RefCell;

/// How much is drawn at once.
const STOCK: usize = 1_024;

struct RandomStock {
    bytes: [u8; STOCK],
    used: usize,
}

thread_local! {
    static MINE: RefCell<RandomStock> = const { RefCell::new(RandomStock { bytes: [0; STOCK], used: STOCK }) };
}

/// 128 random bits for a name; fails only if the system gives no randomness.
pub fn random_bits() -> Result<[u8; 16], StoreError> {
    MINE.with_borrow_mut(|stock| stock.take(|bytes| getrandom::fill(bytes).map_err(StoreError::unavailable)))
}

impl RandomStock {
    fn take(&mut self, fill: impl FnOnce(&mut [u8]) -> Result<(), StoreError>) -> Result<[u8; 16], StoreError> {
        let mut bits = [0; 16];
        if self.used + bits.len() > STOCK {
            // Only a draw that succeeded makes a stock: a failed one may have left old bytes in place.
            self.used = STOCK;
            fill(&mut self.bytes)?;
            self.used = 0;
        }
        let taken = &mut self.bytes[self.used..self.used + bits.len()];
        bits.copy_from_slice(taken);
        taken.fill(0);
        self.used += bits.len();
        Ok(bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn empty() -> RandomStock {
        RandomStock { bytes: [0; STOCK], used: STOCK }
    }

    #[test]
    fn names_drawn_across_several_stocks_all_differ() {
        let drawn: HashSet<[u8; 16]> = (0..STOCK).map(|_| random_bits().unwrap()).collect();
        assert_eq!(drawn.len(), STOCK);
        let elsewhere = std::thread::spawn(|| random_bits().unwrap()).join().unwrap();
        assert!(!drawn.contains(&elsewhere), "another thread has a stock of its own");
    }

    #[test]
    fn a_byte_leaves_the_stock_once_and_in_order() {
        let (mut stock, mut draws) = (empty(), 0_u8);
        let mut count = |bytes: &mut [u8]| {
            draws += 1;
            bytes.iter_mut().enumerate().for_each(|(at, byte)| *byte = draws ^ (at / 16) as u8);
            Ok(())
        };
        for at in 0..STOCK / 16 {
            assert_eq!(stock.take(&mut count).unwrap(), [1 ^ at as u8; 16]);
        }
        assert_eq!(stock.bytes, [0; STOCK], "what was given away is wiped");
        assert_eq!(stock.take(&mut count).unwrap(), [2; 16]);
    }

    #[test]
    fn a_system_without_randomness_gives_no_name_and_is_asked_again() {
        let mut stock = empty();
        for _ in 0..2 {
            assert!(stock.take(|_| Err(StoreError::unavailable("no randomness"))).is_err());
        }
        assert_eq!(
            stock
                .take(|bytes| {
                    bytes.fill(7);
                    Ok(())
                })
                .unwrap(),
            [7; 16]
        );
    }
}
