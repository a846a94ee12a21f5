//! Counting what nobody lists: capture and recapture, random addresses.

use arose::estimate::addresses::{LiveAddress, Probes, Public, live_addresses, pages, servers};
use arose::estimate::capture::{Captures, chao1, chapman, lincoln_petersen};
use arose::estimate::simulate::{AddressConfig, AddressSpace, choose_distinct};
use arose::mix::SplitMix;

use super::{check_coverage, quick};
use crate::statistics::{check_within, mean_and_error};

/// How many of two samples of 200 and 150 out of 1,000 are the same.
fn recaptured(random: &mut SplitMix) -> u64 {
    let first = choose_distinct(1000, 200, random);
    let second = choose_distinct(1000, 150, random);
    let mut is_first = [false; 1000];
    first.iter().for_each(|&page| is_first[page] = true);
    second.iter().filter(|&&page| is_first[page]).count() as u64
}

/// 2,000 runs: Chapman's formula is unbiased, Lincoln and Petersen's about 26 too high.
#[test]
fn two_samples_of_a_thousand() {
    let mut random = SplitMix::new(1);
    let shared: Vec<u64> = (0..2000).map(|_| recaptured(&mut random)).collect();
    let chapman: Vec<f64> = shared
        .iter()
        .map(|&m| chapman(200, 150, m).unwrap().value)
        .collect();
    let plain: Vec<f64> = shared
        .iter()
        .map(|&m| lincoln_petersen(200, 150, m).unwrap())
        .collect();
    let (mean, error) = mean_and_error(&chapman);
    check_within("Chapman", mean, 1000.0, error);
    let (mean, error) = mean_and_error(&plain);
    // The published 1026 is a mean of 2,000 runs as well.
    check_within("Lincoln-Petersen", mean, 1026.0, error * 2_f64.sqrt());
    assert!(mean > 1010.0);
}

#[test]
fn capture_intervals_cover() {
    check_coverage("Chapman, Chao 1", |seed| {
        let mut random = SplitMix::new(seed);
        let twice = chapman(200, 150, recaptured(&mut random)).unwrap();
        let mut times = [0_u64; 1000];
        for _ in 0..1500 {
            times[random.below(1000) as usize] += 1;
        }
        let often = chao1(&times.into_iter().collect::<Captures>()).unwrap();
        vec![(twice, 1000.0), (often, 1000.0)]
    });
}

/// Where pages differ in their chance of capture, Chao's figure is too low but above what was seen.
#[test]
fn chao_is_a_lower_bound() {
    let mut random = SplitMix::new(2);
    let mut times = [0_u64; 1000];
    for _ in 0..2000 {
        // The fourth power makes the first pages far more likely than the last.
        times[(random.next_f64().powi(4) * 1000.0) as usize] += 1;
    }
    let captures: Captures = times.into_iter().collect();
    let estimate = chao1(&captures).unwrap().value;
    println!("{} of 1000 seen, {estimate:.0} estimated", captures.n_seen);
    assert!(captures.n_seen as f64 + 50.0 < estimate && estimate < 1000.0);
}

fn knock(space: &AddressSpace, n: usize, random: &mut SplitMix) -> Vec<LiveAddress> {
    (0..n)
        .filter_map(|_| space.probe(random.below(space.size()) as usize))
        .map(|host| LiveAddress {
            n_addresses: host.n_addresses,
            n_hosts: 1,
        })
        .collect()
}

/// 200,000 draws from 2^20 addresses: plain counts give live addresses, weighted ones hosts, within
/// 14%, four times the deviation of 3.5%.
#[test]
fn hosts_on_several_addresses() {
    let space = AddressSpace::new(&AddressConfig::default()).unwrap();
    let n_live = space.n_live() as f64;
    for seed in 0..5 {
        let hits = knock(&space, 200_000, &mut SplitMix::new(seed));
        let probes = Probes {
            n_pool: space.size(),
            n_drawn: 200_000,
        };
        let plain = live_addresses(probes, hits.len() as u64).unwrap().value;
        let weighted = servers(probes, &hits).unwrap().value;
        println!("{n_live} live addresses: {plain:.0}; 4000 hosts: {weighted:.0}");
        assert!((plain / n_live - 1.0).abs() < 0.14 && plain > 4600.0);
        assert!((weighted / 4000.0 - 1.0).abs() < 0.14);
    }
}

/// Pages per server are log-normal with a mean of 289, and a fifth of the servers is public.
#[test]
fn address_intervals_cover() {
    let space = AddressSpace::new(&AddressConfig {
        n_bits: 16,
        ..AddressConfig::default()
    })
    .unwrap();
    let mut random = SplitMix::new(7);
    let sizes: Vec<u64> = (0..20_000)
        .map(|_| {
            // The sum of twelve uniform numbers is nearly normal with deviation one.
            let deviate = (0..12).map(|_| random.next_f64()).sum::<f64>() - 6.0;
            (175.0 * deviate.exp()).round() as u64
        })
        .collect();
    let mean = sizes.iter().sum::<u64>() as f64 / 20_000.0;
    check_coverage("addresses", |seed| {
        let mut random = SplitMix::new(seed);
        let hits = knock(&space, 20_000, &mut random);
        let probes = Probes {
            n_pool: space.size(),
            n_drawn: 20_000,
        };
        let plain = live_addresses(probes, hits.len() as u64).unwrap();
        let weighted = servers(probes, &hits).unwrap();
        let n_public = (0..500).filter(|_| random.below(5) == 0).count() as u64;
        let crawled: Vec<u64> = (0..250)
            .map(|_| sizes[random.below(20_000) as usize])
            .collect();
        let public = Public {
            n_examined: 500,
            n_public,
        };
        let all = pages(&weighted, public, &crawled, &quick(seed)).unwrap();
        vec![
            (plain, space.n_live() as f64),
            (weighted, 4000.0),
            (all.estimate, 4000.0 * 0.2 * mean),
        ]
    });
}
