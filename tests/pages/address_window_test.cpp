#include "pages/address_space.hpp"

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

#include "pages/failing_system.hpp"
#include "support/child_process.hpp"

namespace tensorpool::pages {
namespace {

using testing::Failing;
using testing::holds_in_child;
using testing::SystemCall;

/// Returns what RLIMIT_DATA counts, and the stack: the sixth number of proc(5), statm.
std::size_t data_bytes() {
    std::ifstream statm("/proc/self/statm");
    std::size_t pages = 0;
    for (int i = 0; i != 6; ++i) statm >> pages;
    return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

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
        if (!window.describe(0, 3) || window.described() != 3) return false;
        if (window.map().page_count() != 3 * granule_pages) return false;
        window.lenders()[2] = 5;
        return window.describe(0, 1) && window.described() == 3 && window.describe(0, 1000) &&
               window.lenders()[2] == 5 && window.lenders()[999] == 0 &&
               window.map().at(1000 * granule_pages - 1).empty();
    }));
}

TEST(AddressWindow, EntriesBeforeTheDescribedOnesAreReadAsEmptyAndWrittenOnceDescribed) {
    EXPECT_TRUE(holds_in_child([] {
        static AddressWindow window;
        if (!window.set_up() || !window.describe(900, 1000)) return false;
        const PageNumber page = 500 * granule_pages;
        if (!window.map().at(page).empty()) return false;
        if (!window.describe(500, 501) || window.described() != 1000) return false;
        window.map().set_first(page, PageEntry(7));
        return window.map().at(page).word() == 7 && window.map().at(page - 1).empty();
    }));
}

TEST(AddressWindow, EntriesThatAreOnlyReadTakeNoDataMemory) {
    EXPECT_TRUE(holds_in_child([] {
        static AddressWindow window;
        if (!window.set_up()) return false;
        // 12,288 granules have 48 MiB of entries.
        const std::size_t bytes = data_bytes() + (std::size_t{32} << 20);
        const rlimit limit{bytes, bytes};
        return setrlimit(RLIMIT_DATA, &limit) == 0 && window.describe(12'288, 12'289) &&
               !window.describe(0, 12'288);
    }));
}

TEST(AddressWindow, TablesStayIfTheyCannotGrow) {
    EXPECT_TRUE(holds_in_child([] {
        static AddressWindow window;
        if (!window.set_up() || !window.describe(0, 3)) return false;
        {
            const Failing failing(SystemCall::commit_records);
            if (window.describe(0, 1000)) return false;
        }
        return window.described() == 3 && window.describe(0, 1000);
    }));
}

}  // namespace
}  // namespace tensorpool::pages
