// The reservation where the process may not have as much address space as it likes.

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <fstream>

#include "pages/address_space.hpp"
#include "platform/platform.hpp"
#include "support/child_process.hpp"

namespace tensorpool::pages {
namespace {

using testing::holds_in_child;

constexpr std::size_t mib = std::size_t{1} << 20;

/// Leaves this process so much address space beyond what it has. The hard limit stays.
bool leave_address_space(std::size_t bytes) {
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit limit{};
    if (getrlimit(RLIMIT_AS, &limit) != 0) return false;
    limit.rlim_cur = pages * platform::page_bytes() + bytes;
    return setrlimit(RLIMIT_AS, &limit) == 0;
}
bool leave_all_address_space() {
    rlimit limit{};
    if (getrlimit(RLIMIT_AS, &limit) != 0) return false;
    limit.rlim_cur = limit.rlim_max;
    return setrlimit(RLIMIT_AS, &limit) == 0;
}

std::size_t reserved_bytes(const AddressSpace& space) {
    return std::size_t{space.map().page_count()} * page_bytes;
}

TEST(AddressSpaceUnderALimit, WithoutOneReservesATebibyteOrWhatTheSystemGrants) {
    EXPECT_TRUE(holds_in_child([] {
        static AddressSpace space;
        if (space.lend(1, 1, 1).count == 0) return false;
        return reserved_bytes(space) <= (std::size_t{1} << 40) &&
               reserved_bytes(space) >= 1024 * mib;
    }));
}

TEST(AddressSpaceUnderALimit, TakesAtMostHalfOfWhatIsLeftAndLendsAllOfIt) {
    for (const std::size_t left : {100 * mib, 2000 * mib, 40'000 * mib}) {
        EXPECT_TRUE(holds_in_child([left] {
            static AddressSpace space;
            if (!leave_address_space(left)) return false;
            const std::size_t before = platform::available_address_space();
            const PageCount loan = space.usual_loan();
            const std::size_t taken = before - platform::available_address_space();
            // The tables beside the page map are small.
            if (taken > left / 2 + left / 100 || reserved_bytes(space) * 8 < left) return false;
            PageCount lent = 0;
            while (const PageCount count = space.lend(1, granule_pages, loan).count) lent += count;
            return lent == space.map().page_count();
        })) << left / mib
            << " MiB left";
    }
}

TEST(AddressSpaceUnderALimit, RefusesToLendWithoutRoomAndWorksOnceThereIs) {
    EXPECT_TRUE(holds_in_child([] {
        static AddressSpace space;
        if (!leave_address_space(8 * mib)) return false;
        if (space.lend(1, 1, 1).count != 0 || space.map().page_count() != 0) return false;
        if (space.usual_loan() != granule_pages || space.is_lent_to(1, &space)) return false;
        space.take_back(1);
        return leave_all_address_space() && space.lend(1, 1, 1).count != 0;
    }));
}

}  // namespace
}  // namespace tensorpool::pages
