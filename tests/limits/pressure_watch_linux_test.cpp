#include <gtest/gtest.h>

#include <filesystem>

#include <tensorpool/budget.hpp>

#include "limits/pressure_watch.hpp"
#include "platform/memory/memory_pressure.hpp"

namespace tensorpool::limits {
namespace {

std::size_t events_of_this_process() {
    std::size_t events = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code none;
        events += std::filesystem::read_symlink(entry.path(), none) == "anon_inode:[eventfd]";
    }
    return events;
}

TEST(PressureWatchEvents, AreRequestedOnceThereIsAHolder) {
    const platform::PressureEvent event = platform::open_pressure_event();
    if (event.file < 0) GTEST_SKIP() << "no memory group of version 1 accepts the request";
    close_pressure_event(event);
    if (events_of_this_process() != 0) GTEST_SKIP() << "another test of this process had a holder";
    class Holder : public MemoryHolder {
    public:
        std::size_t available() const noexcept override { return 0; }
        std::size_t give(std::size_t) noexcept override { return 0; }
    } holder;
    Budget budget("cache");
    look_at_pressure();
    EXPECT_EQ(events_of_this_process(), 0U);
    const HolderRegistration registration = budget.add_holder(holder);
    look_at_pressure();
    EXPECT_EQ(events_of_this_process(), 1U);
    look_at_pressure();
    EXPECT_EQ(events_of_this_process(), 1U);
}

}  // namespace
}  // namespace tensorpool::limits
