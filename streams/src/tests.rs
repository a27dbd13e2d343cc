//! Tests that streams are independent, that keys never collide, and that the derivation of keys does not change.

use std::collections::BTreeSet;

use everett_fault::FaultKind;

use super::*;

fn draw(streams: &mut Streams, purpose: Purpose) -> [u8; 24] {
    let mut buf = [0; 24];
    streams.fill(purpose, &mut buf);
    buf
}

fn node(seed: u64, name: &str) -> Streams {
    Streams::new(&Lineage::new(Seed::new(seed)), Owner::Node(name))
}

/// All owners of streams (parts of Everett that draw random numbers) except nodes.
const OWNERS: [Owner<'static>; 7] =
    [Owner::Wire, Owner::Endpoint, Owner::Faults, Owner::Composer, Owner::Fates, Owner::Plan, Owner::Search];

#[test]
fn draws_for_one_purpose_do_not_affect_another() {
    for drawn in Purpose::each() {
        for other in Purpose::each().into_iter().filter(|other| *other != drawn) {
            let (mut a, mut b) = (node(1, "a"), node(1, "a"));
            draw(&mut a, drawn);
            assert_eq!(draw(&mut a, other), draw(&mut b, other), "{drawn:?} affects {other:?}");
            assert_ne!(draw(&mut a, other), draw(&mut b, drawn));
        }
    }
}

/// Power loss, reset and bit rot of a disk each have a random stream of their own. Every disk of every node has these
/// three.
#[test]
fn each_fault_of_each_disk_has_a_stream_of_its_own() {
    let purposes = [(0, 0), (0, 1), (1, 0)].map(|(node, disk)| {
        [Purpose::PowerLoss { node, disk }, Purpose::Reset { node, disk }, Purpose::Rot { node, disk }]
    });
    let mut streams = Streams::new(&Lineage::new(Seed::new(1)), Owner::Faults);
    let drawn: BTreeSet<_> =
        purposes.as_flattened().iter().map(|&purpose| draw(&mut streams, purpose)).collect();
    assert_eq!(drawn.len(), 9);
}

#[test]
fn a_node_name_cannot_be_mistaken_for_another_owner() {
    let mut seen = BTreeSet::new();
    let names = [
        "faults",
        "disks",
        "wire",
        "host",
        "workload",
        "exploration",
        "plan",
        "network",
        "entropy",
        "",
        "a",
        "aa",
    ];
    let id = String::from_utf8(OwnerKind::Faults.id().to_le_bytes().to_vec()).unwrap();
    let owners = names.into_iter().chain([&*id]).map(Owner::Node).chain(OWNERS);
    for owner in owners {
        for purpose in Purpose::each() {
            let drawn = draw(&mut Streams::new(&Lineage::new(Seed::new(1)), owner), purpose);
            assert!(seen.insert(drawn), "{owner:?} {purpose:?}");
        }
    }
}

#[test]
fn every_kind_has_an_owner_and_every_owner_a_purpose() {
    let kinds: Vec<OwnerKind> = [Owner::Node("a")].into_iter().chain(OWNERS).map(Owner::kind).collect();
    assert_eq!(kinds, OwnerKind::ALL);
    for kind in OwnerKind::ALL {
        assert!(Purpose::each().iter().any(|purpose| purpose.owners().contains(kind)), "{kind:?}");
    }
}

#[test]
fn identifiers_are_unique() {
    let purposes: BTreeSet<u16> = Purpose::each().into_iter().map(Purpose::id).collect();
    assert_eq!(purposes.len(), Purpose::each().len());
    let owners: BTreeSet<u16> = OwnerKind::ALL.iter().map(|kind| kind.id()).collect();
    assert_eq!(owners.len(), OwnerKind::ALL.len());
}

#[test]
fn a_timeline_draws_other_values_than_a_boot_of_the_same_seed() {
    for seed in [0, 1, u64::MAX] {
        for owner in [Owner::Node("a")].into_iter().chain(OWNERS) {
            for purpose in Purpose::each() {
                let [boot, timeline] = [Lineage::boot(BootSeed::new(seed)), Lineage::new(Seed::new(seed))]
                    .map(|lineage| draw(&mut Streams::new(&lineage, owner), purpose));
                assert_ne!(boot, timeline, "seed {seed}, {owner:?} {purpose:?}");
            }
        }
    }
}

#[test]
fn seeds_forks_and_owners_differ() {
    let mut seen = BTreeSet::new();
    let root = Lineage::new(Seed::new(1));
    let children = [root.child(5, 1), root.child(5, 2), root.child(1, 5), root.child(5, 1).child(5, 1)];
    for lineage in
        [root, Lineage::new(Seed::new(2)), Lineage::boot(BootSeed::new(1)), Lineage::boot(BootSeed::new(2))]
            .into_iter()
            .chain(children)
    {
        for owner in [Owner::Node("a"), Owner::Node("b")].into_iter().chain(OWNERS) {
            assert!(seen.insert(draw(&mut Streams::new(&lineage, owner), Purpose::Entropy)));
        }
    }
}

/// A stream's position is stored exactly, both within and at the borders of blocks. The cipher computes blocks of 64
/// words.
#[test]
fn every_position_survives_storage() {
    let mut a = node(9, "n");
    for words in 0..200 {
        let mut b = a.clone();
        let mut c: Streams = postcard::from_bytes(&postcard::to_stdvec(&a).unwrap()).unwrap();
        assert_eq!((&a, &a), (&b, &c), "{words}");
        assert_eq!(b.next_u64(Purpose::Entropy), c.next_u64(Purpose::Entropy), "{words}");
        a.fill(Purpose::Entropy, &mut [0; 4]);
    }
}

#[test]
fn a_position_survives_storage() {
    let mut a = node(9, "n");
    draw(&mut a, Purpose::Entropy);
    a.next_u64(Purpose::Link { from: 0, to: 1, draw: LinkDraw::Loss });
    let bytes = postcard::to_stdvec(&a).unwrap();
    let mut b: Streams = postcard::from_bytes(&bytes).unwrap();
    assert_eq!(a, b);
    for purpose in Purpose::each() {
        assert_eq!(draw(&mut a, purpose), draw(&mut b, purpose));
    }
}

/// Seeds are stored, shown and read exactly like numbers of type `u64`.
#[test]
fn a_seed_has_the_form_of_its_number() {
    for number in [0, 1, 300, u64::MAX] {
        let (seed, boot) = (Seed::new(number), BootSeed::new(number));
        assert_eq!(postcard::to_stdvec(&seed).unwrap(), postcard::to_stdvec(&number).unwrap());
        assert_eq!(postcard::to_stdvec(&boot).unwrap(), postcard::to_stdvec(&number).unwrap());
        assert_eq!(serde_json::to_string(&(seed, boot)).unwrap(), format!("[{number},{number}]"));
        assert_eq!(format!("{seed} {boot} {seed:5}"), format!("{number} {number} {number:5}"));
        assert_eq!((number.to_string().parse(), number.to_string().parse()), (Ok(seed), Ok(boot)));
    }
    for text in ["", "x", "-1", "18446744073709551616"] {
        assert_eq!(text.parse::<Seed>().unwrap_err(), text.parse::<u64>().unwrap_err());
    }
}

/// Fails if a stream's key or the stored form of streams and purposes changes. The test draws from the streams of a
/// timeline and of a boot, for every owner and every purpose. Each parameter of a purpose has its first value. A change
/// to any of these keys and forms changes every trail and requires a new machine version.
#[test]
fn the_derivation_is_pinned() {
    let mut hasher = blake3::Hasher::new();
    for lineage in [Lineage::new(Seed::new(42)).child(7, 3), Lineage::boot(BootSeed::new(42))] {
        for owner in [Owner::Node("node")].into_iter().chain(OWNERS) {
            let mut streams = Streams::new(&lineage, owner);
            for purpose in Purpose::each() {
                hasher.update(&draw(&mut streams, purpose));
            }
            hasher.update(&postcard::to_stdvec(&streams).unwrap());
        }
    }
    assert_eq!(&hasher.finalize().to_hex()[..16], PINNED);
}
const PINNED: &str = "b1244f2ee646c6a3";

/// Fails if the key of a purpose with an enum as parameter changes, for any value of the enum: each [`LinkDraw`] (what
/// is drawn for a frame on a link) and each [`FaultKind`].
#[test]
fn the_derivation_of_parameters_is_pinned() {
    let links: Vec<_> = LinkDraw::ALL.iter().map(|&draw| Purpose::Link { from: 1, to: 2, draw }).collect();
    let kinds = FaultKind::ALL.map(|kind| Purpose::Fault { kind });
    for (name, purposes, pinned) in
        [("links", &links[..], "1f986329d4671d55"), ("kinds", &kinds, "2ff6d3e984faebfe")]
    {
        let mut streams = Streams::new(&Lineage::new(Seed::new(42)), Owner::Wire);
        let drawn: Vec<u8> = purposes.iter().flat_map(|&purpose| draw(&mut streams, purpose)).collect();
        assert_eq!(&blake3::hash(&drawn).to_hex()[..16], pinned, "{name}");
    }
}
