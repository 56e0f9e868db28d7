#pragma once

#include <string>
#include <utility>
#include <vector>

#include <tensorpool/heap_profile.hpp>

namespace tensorpool::command::profile::testing {

/// A profile of a process that never existed.
class MadeProfile {
public:
    MadeProfile() {
        profile_.process = 4711;
        profile_.process_name = "train";
        profile_.time_unix_ns = 1'700'000'000'000'000'000;
        profile_.interval = 512 << 10;
    }

    /// Adds a call, and returns its index.
    std::uint32_t frame(std::string module, std::uint64_t offset) {
        profile_.frames.push_back({std::move(module), offset});
        return static_cast<std::uint32_t>(profile_.frames.size() - 1);
    }
    /// A call of Python.
    std::uint32_t python(const std::string& function, std::uint64_t line) {
        return frame("python:" + function + "@/home/me/train.py", line);
    }
    /// Adds a site whose live bytes are these, with twice as many at the peak, and four times as
    /// many allocated, in blocks of 100 bytes.
    ProfileSite& site(std::vector<std::uint32_t> innermost_first, std::uint64_t bytes) {
        ProfileSite& site = profile_.sites.emplace_back();
        site.id = profile_.sites.size();
        site.stack = std::move(innermost_first);
        site.samples = 3;
        site.live_bytes = bytes;
        site.peak_bytes = 2 * bytes;
        site.allocated_bytes = 4 * bytes;
        site.live_blocks = static_cast<double>(bytes) / 100;
        site.peak_blocks = 2 * site.live_blocks;
        site.allocated_blocks = 4 * site.live_blocks;
        return site;
    }
    HeapProfile& profile() { return profile_; }

private:
    HeapProfile profile_;
};

/// Two sites of Python below the same call: 6000 bytes at line 12, below a library, and 2000 at
/// line 20.
inline HeapProfile two_sites() {
    MadeProfile made;
    const auto library = made.frame("/nowhere/lib.so", 0x10);
    const auto load = made.python("load", 12);
    const auto step = made.python("step", 20);
    const auto main = made.python("<module>", 3);
    made.site({step, main}, 2000);
    made.site({library, load, main}, 6000);
    return made.profile();
}

}  // namespace tensorpool::command::profile::testing
