#include <tensorpool/device/explore.hpp>

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "simulation/simulated_work.hpp"

namespace tensorpool {
namespace {

using test::small_device;

constexpr std::size_t page = 4096;

StreamHandle make_stream(SimulatedBackend& device) {
    StreamHandle stream = nullptr;
    EXPECT_EQ(device.create_stream(0, &stream), DeviceStatus::ok);
    return stream;
}

void* make_memory(SimulatedBackend& device) {
    void* memory = nullptr;
    EXPECT_EQ(device.allocate(0, page, StorageKind::private_storage, &memory), DeviceStatus::ok);
    return memory;
}

// Does not wait for the copy's end if it is late. With an eager schedule it never is.
void impatient(SimulatedBackend& device) {
    const StreamHandle stream = make_stream(device);
    void* const memory = make_memory(device);
    EventHandle event = nullptr;
    EXPECT_EQ(device.create_event(0, EventFlags::none, &event), DeviceStatus::ok);
    EXPECT_EQ(device.launch(0, stream, {"long kernel", {}, {{memory, page}}, {}, 0}),
              DeviceStatus::ok);
    EXPECT_EQ(device.record_event(0, event, stream), DeviceStatus::ok);
    if (device.query_event(0, event) == DeviceStatus::not_ready) {
        EXPECT_EQ(device.deallocate(0, memory, page, StorageKind::private_storage),
                  DeviceStatus::ok);
    }
}

TEST(Explore, FindsAFaultThatEagerWorkHides) {
    SimulatedBackend eager(small_device());
    impatient(eager);
    EXPECT_EQ(eager.hazard_count(), 0U);
    const Exploration found = explore(small_device(), impatient);
    ASSERT_TRUE(found.hazard.has_value());
    EXPECT_EQ(found.hazard->kind, HazardKind::free_in_use);
}

TEST(Explore, FindingIsReproducedByItsChoices) {
    const Exploration found = explore(small_device(), impatient);
    SimulationOptions options = small_device(Schedule::replayed);
    options.choices = found.choices;
    SimulatedBackend again(options);
    impatient(again);
    ASSERT_EQ(again.hazard_count(), 1U);
    EXPECT_EQ(to_string(again.hazards().front().kind), to_string(found.hazard->kind));
}

// Collects what functions in three streams append, in all possible orders.
TEST(Explore, RunsEachOrderOfThreeStreamsOnce) {
    std::multiset<std::string> orders;
    const Exploration found = explore(small_device(), [&](SimulatedBackend& device) {
        std::string order;
        for (const char name : {'a', 'b', 'c'}) {
            device.launch(0, make_stream(device),
                          {"append", {}, {}, [&order, name] { order += name; }, 0});
        }
        EXPECT_EQ(device.synchronize_device(0), DeviceStatus::ok);
        orders.insert(order);
    });
    EXPECT_EQ(found.schedules, 6U);
    EXPECT_FALSE(found.bound_met);
    EXPECT_EQ(orders, (std::multiset<std::string>{"abc", "acb", "bac", "bca", "cab", "cba"}));
}

TEST(Explore, IndependentStreamsNeedOneOrder) {
    const Exploration found = explore(small_device(), [&](SimulatedBackend& device) {
        for (int i = 0; i < 3; ++i) {
            void* const memory = make_memory(device);
            device.launch(0, make_stream(device), {"fill", {}, {{memory, page}}, [] {}, 0});
        }
        EXPECT_EQ(device.synchronize_device(0), DeviceStatus::ok);
    });
    EXPECT_EQ(found.schedules - found.redundant, 1U);
    EXPECT_FALSE(found.hazard.has_value());
}

TEST(Explore, QueriesAreAnsweredBothWays) {
    std::multiset<std::string> answers;
    const Exploration found = explore(small_device(), [&](SimulatedBackend& device) {
        const StreamHandle stream = make_stream(device);
        device.launch(0, stream, {"work", {}, {}, [] {}, 0});
        std::string heard;
        while (device.query_stream(0, stream) == DeviceStatus::not_ready) heard += "no ";
        answers.insert(heard + "yes");
    });
    EXPECT_EQ(answers, (std::multiset<std::string>{"yes", "no yes", "no no yes"}));
    EXPECT_EQ(found.schedules, 3U);
}

TEST(Explore, ReportsTheExceptionAndItsChoices) {
    const Exploration found = explore(small_device(), [&](SimulatedBackend& device) {
        std::string order;
        for (const char name : {'a', 'b'}) {
            device.launch(0, make_stream(device),
                          {"append", {}, {}, [&order, name] { order += name; }, 0});
        }
        device.synchronize_device(0);
        if (order == "ba") throw std::runtime_error("the second came first");
    });
    EXPECT_EQ(found.failure, "the second came first");
    EXPECT_EQ(found.choices, std::vector<unsigned>{1});
    EXPECT_EQ(found.schedules, 2U);
}

TEST(Explore, ReportsThatItStoppedAtItsBound) {
    const auto program = [](SimulatedBackend& device) {
        for (int i = 0; i < 6; ++i) {
            device.launch(0, make_stream(device), {"work", {}, {}, [] {}, 0});
        }
        device.synchronize_device(0);
    };
    const Exploration some = explore(small_device(), program, 100);
    EXPECT_TRUE(some.bound_met);
    EXPECT_EQ(some.schedules, 100U);
    const Exploration all = explore(small_device(), program, 720);
    EXPECT_FALSE(all.bound_met);
    EXPECT_EQ(all.schedules, 720U);
}

TEST(Explore, CorrectProgramHasNoHazardInAnyOrder) {
    const Exploration found = explore(small_device(), [&](SimulatedBackend& device) {
        const StreamHandle one = make_stream(device);
        const StreamHandle two = make_stream(device);
        void* const memory = make_memory(device);
        EventHandle event = nullptr;
        device.create_event(0, EventFlags::none, &event);
        device.launch(0, one, {"produce", {}, {{memory, page}}, {}, 0});
        device.launch(0, two, {"other", {}, {}, [] {}, 0});
        device.record_event(0, event, one);
        device.wait_event(0, two, event);
        device.launch(0, two, {"consume", {{memory, page}}, {}, {}, 0});
        if (device.query_stream(0, two) != DeviceStatus::ok) device.synchronize_stream(0, two);
        EXPECT_EQ(device.deallocate(0, memory, page, StorageKind::private_storage),
                  DeviceStatus::ok);
    });
    EXPECT_FALSE(found.hazard.has_value()) << to_string(*found.hazard);
    EXPECT_GT(found.schedules, 1U);
}

}  // namespace
}  // namespace tensorpool
