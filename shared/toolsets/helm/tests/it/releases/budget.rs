//! What a model pays to read the toolset.

use crate::releases::world::World;
use catalog::tokens;
use domain::Level;

#[tokio::test]
async fn the_toolset_fits_its_budget() {
    let Some(world) = World::new().await else { return };
    let cost = |read: bool| {
        let briefs: Vec<&str> = world
            .entries
            .iter()
            .filter(|entry| !read || entry.list() == Level::Read)
            .map(|entry| entry.brief())
            .collect();
        tokens::measure(&format!("[{}]", briefs.join(",")))
    };
    assert_eq!(world.entries.len(), 12);
    assert!(cost(true) <= 440, "the read list costs {}", cost(true));
    assert!(cost(false) <= 1_050, "the whole toolset costs {}", cost(false));
}
