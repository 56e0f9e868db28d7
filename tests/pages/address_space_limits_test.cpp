// The window under a limit of the process's address space.

#include <gtest/gtest.h>

#include <cstdlib>

#include "pages/address_space.hpp"
#include "platform/platform.hpp"
#include "support/address_space_limit_linux.hpp"
#include "support/child_process.hpp"

namespace tensorpool::pages {
namespace {

using testing::holds_in_child;
using testing::leave_address_space;
using testing::leave_all_address_space;

constexpr std::size_t mib = std::size_t{1} << 20;

/// Takes back everything that was lent to the pool.
void take_back_all(AddressSpace& space, unsigned pool_number) {
    space.take_back(pool_number, {0, space.map().page_count()});
}

/// Lends runs of the usual size until that is refused. Returns the pages.
PageCount lend_all(AddressSpace& space) {
    PageCount lent = 0;
    for (;;) {
        const PageCount usual = space.usual_loan(lent * page_bytes);
        const PageCount count = space.lend(1, granule_pages, usual).count;
        if (count == 0) return lent;
        lent += count;
    }
}

TEST(AddressSpaceUnderALimit, WithoutLimitTheWindowIs8TiBOrWhatTheSystemHas) {
    EXPECT_TRUE(holds_in_child([] {
        static AddressSpace space;
        const std::size_t before = platform::available_address_space();
        if (space.lend(1, 1, 1).count == 0) return false;
        const std::size_t window = std::size_t{space.max_pages()} * page_bytes;
        return before >= platform::available_address_space() && window <= (std::size_t{8} << 40) &&
               window >= 1024 * mib;
    }));
}

TEST(AddressSpaceUnderALimit, AlmostAllRemainingAddressesCanBeLent) {
    for (const std::size_t left : {100 * mib, 2000 * mib, 40'000 * mib}) {
        EXPECT_TRUE(holds_in_child([left] {
            static AddressSpace space;
            if (!leave_address_space(left)) return false;
            return lend_all(space) * page_bytes >= left / 100 * 97;
        })) << left / mib
            << " MiB left";
    }
}

TEST(AddressSpaceUnderALimit, LoanIsAtMostASixteenthOfTheRemainingAddresses) {
    EXPECT_TRUE(holds_in_child([] {
        static AddressSpace space;
        if (!leave_address_space(320 * mib)) return false;
        const std::size_t loan = space.usual_loan(0) * page_bytes;
        return loan <= 20 * mib && loan >= 16 * mib;
    }));
}

TEST(AddressSpaceUnderALimit, ReturnedAddressesCanBeMappedByOthers) {
    EXPECT_TRUE(holds_in_child([] {
        static AddressSpace space;
        if (!leave_address_space(500 * mib)) return false;
        lend_all(space);
        if (platform::map(100 * mib, platform::page_bytes()) != nullptr) return false;
        take_back_all(space, 1);
        return platform::map(400 * mib, platform::page_bytes()) != nullptr;
    }));
}

TEST(AddressSpaceUnderALimit, LendFailsWithoutRoomAndRecovers) {
    EXPECT_TRUE(holds_in_child([] {
        static AddressSpace space;
        if (!leave_address_space(mib)) return false;
        if (space.lend(1, 1, 1).count != 0 || space.map().page_count() != 0) return false;
        if (space.usual_loan(0) != granule_pages || space.is_lent_to(1, &space)) return false;
        take_back_all(space, 1);
        return leave_all_address_space() && space.lend(1, 1, 1).count != 0 &&
               lend_all(space) * page_bytes >= 1024 * mib;
    }));
}

}  // namespace
}  // namespace tensorpool::pages
