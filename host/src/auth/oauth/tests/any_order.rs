//! Codes and refresh tokens in any order and at any time, against what the rules say.

use super::*;
use proptest::prelude::*;

/// What somebody does.
#[derive(Debug, Clone)]
enum Step {
    /// The owner consents once more.
    Consent,
    /// Somebody redeems one of the codes.
    Redeem(prop::sample::Index),
    /// Somebody redeems one of the refresh tokens.
    Refresh(prop::sample::Index),
    /// The owner revokes one of the grants.
    Revoke(prop::sample::Index),
    /// So many seconds pass.
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => Just(Step::Consent),
        3 => any::<prop::sample::Index>().prop_map(Step::Redeem),
        6 => any::<prop::sample::Index>().prop_map(Step::Refresh),
        1 => any::<prop::sample::Index>().prop_map(Step::Revoke),
        4 => prop_oneof![0..5_u64, 25..35_u64, 55..65_u64, Just(1800), Just(3600)].prop_map(Step::Pass),
    ]
}

/// A code, as the rules have it.
struct CodeModel {
    code: String,
    at: u64,
    grant: Option<usize>,
}

/// A pair of tokens, as the rules have it.
struct PairModel {
    issued: Issued,
    at: u64,
    grant: usize,
    used: Option<u64>,
}

#[derive(Default)]
struct Model {
    now: u64,
    codes: Vec<CodeModel>,
    pairs: Vec<PairModel>,
    /// Whether each grant is alive.
    grants: Vec<bool>,
}

impl Model {
    fn redeem(&mut self, home: &Home, which: usize) {
        let (now, next) = (self.now, self.grants.len());
        let code = &mut self.codes[which];
        let result = home.token(&home.redeems(&code.code));
        match code.grant {
            Some(grant) => self.grants[grant] = false,
            None if now < code.at + 60 => {
                code.grant = Some(next);
                self.grants.push(true);
                let issued = result.expect("a code is redeemed once within a minute");
                self.pairs.push(PairModel { issued, at: now, grant: next, used: None });
                return;
            }
            None => {}
        }
        assert_eq!(result.unwrap_err().code, ErrorCode::InvalidGrant);
    }

    fn refresh(&mut self, home: &Home, which: usize) {
        let now = self.now;
        let pair = &mut self.pairs[which];
        let (grant, result) = (pair.grant, home.refresh(&pair.issued.refresh));
        let is_late = pair.used.is_some_and(|at| now > at + 30);
        if self.grants[grant] && !is_late {
            pair.used.get_or_insert(now);
            let issued = result.expect("a refresh token is redeemed, and again for a short time");
            self.pairs.push(PairModel { issued, at: now, grant, used: None });
        } else {
            // One that comes too late tells that two have it.
            self.grants[grant] = false;
            assert_eq!(result.unwrap_err().code, ErrorCode::InvalidGrant);
        }
    }

    async fn check(&self, home: &Home) {
        for pair in &self.pairs {
            let admitted = home.admit(&pair.issued).await;
            match (self.grants[pair.grant], self.now < pair.at + 3600) {
                (true, true) => assert!(admitted.is_ok(), "{admitted:?}"),
                (true, false) => assert!(matches!(admitted, Err(Denied::Expired)), "{admitted:?}"),
                (false, _) => assert!(matches!(admitted, Err(Denied::Revoked)), "{admitted:?}"),
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn whatever_is_shown_in_whatever_order_the_rules_hold(steps in prop::collection::vec(step(), 1..24)) {
        let home = Home::new();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut model = Model::default();
        for step in steps {
            match step {
                Step::Consent => model.codes.push(CodeModel { code: home.code(), at: model.now, grant: None }),
                Step::Redeem(which) if !model.codes.is_empty() => model.redeem(&home, which.index(model.codes.len())),
                Step::Refresh(which) if !model.pairs.is_empty() => model.refresh(&home, which.index(model.pairs.len())),
                Step::Revoke(which) if !model.pairs.is_empty() => {
                    let pair = &model.pairs[which.index(model.pairs.len())];
                    model.grants[pair.grant] = false;
                    let sent = [("token", pair.issued.refresh.reveal().to_owned())].into();
                    home.server.revoke(&params(&sent)).unwrap();
                }
                Step::Pass(seconds) => {
                    model.now += seconds;
                    home.pass(seconds);
                }
                _ => {}
            }
            runtime.block_on(model.check(&home));
        }
    }
}
