#include "stress/devices/small_programs.hpp"

#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include <tensorpool/device/explore.hpp>

namespace tensorpool::stress::devices {
namespace {

constexpr std::uint64_t max_schedules = 20'000;

enum class Slabs : bool { plain, expandable };

Exploration explored(const SmallProgram& program, Slabs slabs,
                     const PlantedFault* fault = nullptr) {
    SimulationOptions options;
    options.memory_bytes = small_device_bytes;
    options.granularity = granule;
    options.virtual_memory = slabs == Slabs::expandable;
    options.fill_patterns = false;
    Setting setting;
    setting.simulation = options;
    return explore(
        options,
        [&](SimulatedBackend& backend) {
            SmallDevice device(backend);
            Site site(backend, 0, setting, fault);
            program.run(device, site);
            device.free_all();
        },
        max_schedules);
}

std::string text_of(const Exploration& found) {
    return found.failure + (found.hazard.has_value() ? to_string(*found.hazard) : "");
}

class SmallDeviceProgram : public ::testing::TestWithParam<std::tuple<SmallProgram, Slabs>> {};

TEST_P(SmallDeviceProgram, HasNoHazardInAnyOrder) {
    const auto& [program, slabs] = GetParam();
    const Exploration found = explored(program, slabs);
    EXPECT_EQ(text_of(found), "");
    EXPECT_FALSE(found.bound_met);
}

INSTANTIATE_TEST_SUITE_P(Each, SmallDeviceProgram,
                         ::testing::Combine(::testing::ValuesIn(small_programs().begin(),
                                                                small_programs().end()),
                                            ::testing::Values(Slabs::plain, Slabs::expandable)),
                         [](const auto& one) {
                             const bool plain = std::get<Slabs>(one.param) == Slabs::plain;
                             return std::get<SmallProgram>(one.param).name +
                                    std::string(plain ? "_plain" : "_expandable");
                         });

struct Pair {
    const char* program;
    const char* fault;
    Slabs slabs;
};

class SmallDeviceProgramWithPlantedFault : public ::testing::TestWithParam<Pair> {};

TEST_P(SmallDeviceProgramWithPlantedFault, HasAHazardWithBothOperationsInSomeOrder) {
    const Exploration found = explored(small_program(GetParam().program), GetParam().slabs,
                                       planted_fault(GetParam().fault));
    ASSERT_TRUE(found.hazard.has_value()) << found.failure;
    EXPECT_NE(found.hazard->operation.number, 0U) << text_of(found);
    EXPECT_NE(found.hazard->other.number, 0U) << text_of(found);
}

INSTANTIATE_TEST_SUITE_P(
    Each, SmallDeviceProgramWithPlantedFault,
    ::testing::Values(
        Pair{"free_while_another_stream_uses", "forgets_uses", Slabs::plain},
        Pair{"free_while_another_stream_uses", "reports_events_reached", Slabs::plain},
        Pair{"free_while_another_stream_uses", "records_on_the_default_stream", Slabs::expandable},
        Pair{"free_while_two_streams_use", "remembers_one_use", Slabs::plain},
        Pair{"free_while_two_streams_use", "queries_the_wrong_event", Slabs::plain},
        Pair{"free_while_two_streams_use", "shares_events", Slabs::plain},
        Pair{"trim_while_work_is_pending", "reports_streams_idle", Slabs::plain},
        Pair{"trim_while_work_is_pending", "reports_streams_idle", Slabs::expandable},
        Pair{"trim_while_work_is_pending", "queries_the_default_stream", Slabs::expandable},
        Pair{"end_a_stream", "does_not_wait_for_streams", Slabs::plain},
        Pair{"launch_a_graph_twice", "releases_captures_early", Slabs::plain},
        Pair{"launch_a_graph_twice", "sees_no_capture", Slabs::plain},
        Pair{"free_pinned_while_it_is_copied", "pinned_reports_events_reached", Slabs::plain},
        Pair{"free_pinned_while_two_streams_copy", "pinned_forgets_uses", Slabs::plain},
        Pair{"free_pinned_while_it_is_written", "pinned_records_on_the_default_stream",
             Slabs::plain}),
    [](const auto& one) {
        return one.param.program + std::string("_") + one.param.fault +
               (one.param.slabs == Slabs::plain ? "_plain" : "_expandable");
    });

}  // namespace
}  // namespace tensorpool::stress::devices
