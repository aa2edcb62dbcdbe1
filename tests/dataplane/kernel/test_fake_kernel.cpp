// SPDX-License-Identifier: GPL-2.0-or-later
// The fake keeps the contract; and what only the fake can do.
#include <gtest/gtest.h>

#include "contract.h"
#include "fake_kernel.h"

namespace dataplane::testing {
namespace {

class FakeMachine final : public Machine {
 public:
  FakeMachine() {
    kernel_.on_event([this](const KernelEvent& event) { events_.push_back(event); });
    for (const char* name : {"m1", "m2"}) ports_.push_back(kernel_.add_device(name));
  }
  Kernel& kernel() override { return kernel_; }
  net::IfIndex port(int number) override { return ports_[static_cast<std::size_t>(number - 1)]; }
  void frame(int number, net::MacAddress source) override { kernel_.frame(port(number), source); }
  bool wait_event(const std::function<bool(const KernelEvent&)>& enough) override {
    kernel_.deliver();
    return std::ranges::any_of(events_, enough);
  }

 private:
  FakeKernel kernel_;
  std::vector<net::IfIndex> ports_;
  std::vector<KernelEvent> events_;
};

class FakeKernelContract : public ::testing::TestWithParam<Case> {};

TEST_P(FakeKernelContract, Holds) {
  FakeMachine machine;
  GetParam().run(machine);
}

INSTANTIATE_TEST_SUITE_P(All, FakeKernelContract, ::testing::ValuesIn(contract_cases()), case_name);

TEST(FakeKernel, FailsOnDemandOnce) {
  FakeKernel kernel;
  kernel.fail_next("ensure_domain", EPERM);
  const auto failed = kernel.ensure_domain(test_links());
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().error, EPERM);
  EXPECT_TRUE(fine(kernel.ensure_domain(test_links())));
  EXPECT_EQ(kernel.calls("ensure_domain"), 2u);
}

TEST(FakeKernel, LosesEvents) {
  FakeKernel kernel;
  std::vector<KernelEvent> events;
  kernel.on_event([&](const KernelEvent& event) { events.push_back(event); });
  kernel.add_device("m1");
  kernel.lose_events();
  EXPECT_EQ(kernel.deliver(), 1u);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<EventsLost>(events[0]));
}

TEST(FakeKernel, AgesOnlyWhatAges) {
  FakeKernel kernel;
  const auto port = kernel.add_device("m1");
  const auto domain = kernel.ensure_domain(test_links());
  ASSERT_TRUE(fine(domain));
  ASSERT_TRUE(fine(kernel.attach_port(*domain, port, false, true)));
  kernel.frame(port, mac_of(1));
  ASSERT_TRUE(fine(kernel.set_port_mac(port, mac_of(2))));
  kernel.age(port, mac_of(1));
  kernel.age(port, mac_of(2));
  EXPECT_FALSE(kernel.bridge_entry(*domain, mac_of(1)));
  EXPECT_TRUE(kernel.bridge_entry(*domain, mac_of(2)));
}

}  // namespace
}  // namespace dataplane::testing
