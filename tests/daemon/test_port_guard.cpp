// SPDX-License-Identifier: GPL-2.0-or-later
// When a port closes, for how long, and how it comes back; with a clock of our own.
#include <gtest/gtest.h>

#include "daemon/port_guard.h"

using namespace peerland;
using namespace std::chrono_literals;
using dataplane::Reaction;

namespace {

class PortGuardTest : public testing::Test {
 protected:
  PortGuardTest() {
    settings.security.violations = 3;
    settings.security.window = 10s;
    settings.security.hold = 60s;
    settings.security.max_hold = 200s;
    settings.security.forgive = 1000s;
    settings.security.storm_rate = 100;
    configure();
  }
  void configure() { changed = guard.configure(settings, now); }
  void after(net::Duration time) { now += time; }
  // The last of so many reports, a second apart.
  PortGuard::Change violations(GuardCause kind, int count) {
    PortGuard::Change last;
    for (int i = 0; i < count; ++i, after(1s)) last = guard.violation(kind, now);
    return last;
  }
  void expect(GuardState state, GuardCause cause) {
    EXPECT_EQ(guard.state(), state);
    EXPECT_EQ(guard.cause(), cause);
  }
  // Closes it by a loop; how long for.
  net::Duration close_by_loop() {
    for (int i = 0; i < 3; ++i) changed = guard.violation(GuardCause::Loop, now);
    EXPECT_TRUE(changed);
    return guard.until() - now;
  }

  GuardSettings settings;
  PortGuard guard;
  PortGuard::Change changed;
  net::TimePoint now{net::TimePoint{} + 1h};
};

}  // namespace

TEST_F(PortGuardTest, DropsOnlyUnlessItIsToldMore) {
  EXPECT_FALSE(violations(GuardCause::Macs, 100));
  EXPECT_FALSE(violations(GuardCause::Spoofing, 100));
  EXPECT_FALSE(violations(GuardCause::Protocols, 100));
  EXPECT_FALSE(guard.over_limits(1'000'000, now));
  EXPECT_TRUE(guard.open());
  EXPECT_EQ(guard.closures(), 0u);
}

TEST_F(PortGuardTest, EachKindHasItsReaction) {
  const struct {
    GuardCause kind;
    Reaction dataplane::SecuritySettings::* reaction;
  } kinds[] = {{GuardCause::Macs, &dataplane::SecuritySettings::macs},
               {GuardCause::Spoofing, &dataplane::SecuritySettings::spoofing},
               {GuardCause::Protocols, &dataplane::SecuritySettings::protocols},
               {GuardCause::Loop, &dataplane::SecuritySettings::loop}};
  for (const auto& one : kinds)
    for (const Reaction reaction :
         {Reaction::Count, Reaction::Drop, Reaction::Quarantine, Reaction::Shut}) {
      PortGuard fresh;
      GuardSettings with = settings;
      with.security.loop = Reaction::Drop;
      with.security.*one.reaction = reaction;
      (void)fresh.configure(with, now);
      for (int i = 0; i < 2; ++i) EXPECT_FALSE(fresh.violation(one.kind, now));
      const auto change = fresh.violation(one.kind, now);
      if (reaction == Reaction::Count || reaction == Reaction::Drop) {
        EXPECT_FALSE(change);
        continue;
      }
      ASSERT_TRUE(change);
      EXPECT_EQ(change->from, GuardState::Open);
      EXPECT_EQ(change->to, reaction == Reaction::Shut ? GuardState::Shut : GuardState::Quarantine);
      EXPECT_EQ(change->cause, one.kind);
      EXPECT_EQ(change->until, now + 60s);
      EXPECT_EQ(fresh.state(), change->to);
    }
}

TEST_F(PortGuardTest, OnlyViolationsOfOneKindWithinTheWindowCount) {
  settings.security.macs = settings.security.spoofing = Reaction::Shut;
  configure();
  EXPECT_FALSE(guard.violation(GuardCause::Macs, now));
  EXPECT_FALSE(guard.violation(GuardCause::Macs, now));
  EXPECT_FALSE(guard.violation(GuardCause::Spoofing, now));
  after(10s);
  EXPECT_FALSE(guard.violation(GuardCause::Macs, now));
  after(5s);
  EXPECT_FALSE(guard.violation(GuardCause::Macs, now));
  EXPECT_TRUE(guard.violation(GuardCause::Macs, now));
}

TEST_F(PortGuardTest, ComesBackByItselfAndLaterEachTime) {
  EXPECT_EQ(close_by_loop(), 60s);
  expect(GuardState::Shut, GuardCause::Loop);
  EXPECT_EQ(guard.deadline(), now + 60s);
  after(59s);
  EXPECT_FALSE(guard.tick(now));
  after(1s);
  changed = guard.tick(now);
  ASSERT_TRUE(changed);
  EXPECT_EQ(changed->to, GuardState::Open);
  EXPECT_EQ(changed->cause, GuardCause::Loop);
  EXPECT_EQ(guard.deadline(), net::kNever);
  EXPECT_EQ(guard.next_hold(now), 120s);
  EXPECT_EQ(close_by_loop(), 120s);
  after(120s);
  EXPECT_TRUE(guard.tick(now));
  EXPECT_EQ(close_by_loop(), 200s);  // not 240
  EXPECT_EQ(guard.closures(), 3u);
  after(200s);
  EXPECT_TRUE(guard.tick(now));
  after(1000s);
  EXPECT_EQ(guard.next_hold(now), 60s);
  EXPECT_EQ(close_by_loop(), 60s);
  after(60s);
  EXPECT_TRUE(guard.tick(now));
  EXPECT_EQ(guard.next_hold(now), 120s);
}

TEST_F(PortGuardTest, WhatComesWhileItIsClosedDoesNotCount) {
  close_by_loop();
  EXPECT_FALSE(violations(GuardCause::Loop, 20));
  EXPECT_FALSE(guard.over_limits(1'000'000, now));
  EXPECT_EQ(guard.closures(), 1u);
  after(60s);
  EXPECT_TRUE(guard.tick(now));
  EXPECT_FALSE(guard.violation(GuardCause::Loop, now));  // begins anew
}

TEST_F(PortGuardTest, AStormIsARateOverTheWindow) {
  settings.security.storm = Reaction::Quarantine;
  configure();
  for (int i = 0; i < 30; ++i, after(1s)) EXPECT_FALSE(guard.over_limits(99, now)) << i;
  EXPECT_FALSE(guard.over_limits(100, now));  // 991 in ten seconds
  after(1s);
  changed = guard.over_limits(108, now);  // 1000
  ASSERT_TRUE(changed);
  expect(GuardState::Quarantine, GuardCause::Storm);
}

TEST_F(PortGuardTest, FlappingLinksAreDampedUntilTheyAreQuiet) {
  for (int i = 0; i < 3; ++i, after(1s)) EXPECT_FALSE(guard.link_changed(now));
  changed = guard.link_changed(now);
  ASSERT_TRUE(changed);
  expect(GuardState::Damped, GuardCause::Flaps);
  EXPECT_EQ(guard.until(), now + 10s);
  after(8s);
  EXPECT_FALSE(guard.link_changed(now));
  after(9s);
  EXPECT_FALSE(guard.tick(now));
  after(1s);
  ASSERT_TRUE(guard.tick(now));
  EXPECT_TRUE(guard.open());
  EXPECT_FALSE(guard.link_changed(now));  // begins anew
  EXPECT_EQ(guard.next_hold(now), 60s);   // flaps are no violation
}

TEST_F(PortGuardTest, SlowChangesOfTheLinkAreNoFlaps) {
  for (int i = 0; i < 100; ++i, after(2s)) EXPECT_FALSE(guard.link_changed(now));
  settings.security.flap_transitions = 0;
  configure();
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(guard.link_changed(now));
}

TEST_F(PortGuardTest, TheSettingsQuarantineStaysUntilTheySayOtherwise) {
  settings.quarantined = true;
  configure();
  ASSERT_TRUE(changed);
  expect(GuardState::Quarantine, GuardCause::Settings);
  EXPECT_EQ(guard.deadline(), net::kNever);
  after(1000h);
  EXPECT_FALSE(guard.tick(now));
  EXPECT_FALSE(guard.set(GuardState::Open, now));
  configure();
  EXPECT_FALSE(changed);
  settings.quarantined = false;
  configure();
  ASSERT_TRUE(changed);
  EXPECT_TRUE(guard.open());
  close_by_loop();
  settings.quarantined = true;
  configure();
  expect(GuardState::Quarantine, GuardCause::Settings);
  EXPECT_EQ(guard.until(), net::kNever);
}

TEST_F(PortGuardTest, ObserveClosesNothing) {
  settings.observe = true;
  settings.security.storm = Reaction::Shut;
  configure();
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(guard.violation(GuardCause::Loop, now));
  changed = guard.violation(GuardCause::Loop, now);
  ASSERT_TRUE(changed);
  EXPECT_TRUE(changed->observed);
  EXPECT_EQ(changed->to, GuardState::Shut);
  EXPECT_TRUE(guard.open());
  EXPECT_TRUE(guard.over_limits(1'000'000, now)->observed);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(guard.link_changed(now));
  EXPECT_TRUE(guard.link_changed(now)->observed);
  EXPECT_TRUE(guard.open());
  EXPECT_EQ(guard.observed(), 3u);
  EXPECT_EQ(guard.closures(), 0u);
}

TEST_F(PortGuardTest, ObserveOpensWhatWasClosedForAViolation) {
  close_by_loop();
  settings.observe = true;
  configure();
  ASSERT_TRUE(changed);
  EXPECT_TRUE(guard.open());
}

TEST_F(PortGuardTest, OperatorsHaveTheLastWord) {
  ASSERT_TRUE(guard.set(GuardState::Shut, now));
  expect(GuardState::Shut, GuardCause::Operator);
  EXPECT_FALSE(guard.set(GuardState::Shut, now));
  after(1000h);
  EXPECT_FALSE(guard.tick(now));
  ASSERT_TRUE(guard.set(GuardState::Quarantine, now));
  ASSERT_TRUE(guard.set(GuardState::Open, now));
  EXPECT_FALSE(guard.set(GuardState::Open, now));
  close_by_loop();
  ASSERT_TRUE(guard.set(GuardState::Open, now));
  EXPECT_EQ(close_by_loop(), 60s);  // what was before is forgotten
}
