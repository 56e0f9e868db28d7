#include "pages/address_space.hpp"

#include <gtest/gtest.h>

#include "pages/failing_system.hpp"
#include "support/child_process.hpp"

namespace tensorpool::pages {
namespace {

using testing::Failing;
using testing::holds_in_child;
using testing::SystemCall;

// In child processes, because a second window replaces the published range of the process.

TEST(AddressWindow, HasOnePosition) {
    EXPECT_TRUE(holds_in_child([] {
        static AddressWindow window;
        if (window.granules() != 0 || !window.set_up()) return false;
        const char* const begin = window.map().address_of(0);
        const std::uint32_t granules = window.granules();
        return window.set_up() && window.map().address_of(0) == begin &&
               window.granules() == granules && granules != 0 &&
               reinterpret_cast<std::uintptr_t>(begin) % (window.alignment() * page_bytes) == 0;
    }));
}

TEST(AddressWindow, TablesDescribeWhatWasRequested) {
    EXPECT_TRUE(holds_in_child([] {
        static AddressWindow window;
        if (!window.set_up() || window.described() != 0) return false;
        if (!window.describe(3) || window.described() != 3) return false;
        if (window.map().page_count() != 3 * granule_pages) return false;
        window.lenders()[2] = 5;
        return window.describe(1) && window.described() == 3 && window.describe(1000) &&
               window.lenders()[2] == 5 && window.lenders()[999] == 0 &&
               window.map().at(1000 * granule_pages - 1).empty();
    }));
}

TEST(AddressWindow, TablesStayIfTheyCannotGrow) {
    EXPECT_TRUE(holds_in_child([] {
        static AddressWindow window;
        if (!window.set_up() || !window.describe(3)) return false;
        {
            const Failing failing(SystemCall::commit_records);
            if (window.describe(1000)) return false;
        }
        return window.described() == 3 && window.describe(1000);
    }));
}

}  // namespace
}  // namespace tensorpool::pages
