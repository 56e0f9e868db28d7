#pragma once

/// @file
/// The page sizes that the kernel supports, and their settings.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tensorpool::command {

inline constexpr const char* page_size_folder = "/sys/kernel/mm/transparent_hugepage";

inline constexpr std::uint64_t huge_page_bytes = std::uint64_t{2} << 20;

/// One page size above the usual 4 KiB.
struct PageSizeSetting {
    std::uint64_t bytes = 0;
    std::string word;     ///< "always", "inherit", "madvise" or "never"
    bool given = false;   ///< provided to memory that requests larger pages
    double fault_ns = 0;  ///< time to touch 4 KiB of it for the first time; 0: not measured
};

/// Returns the word in brackets of a settings file such as `always inherit [madvise] never`, or ""
/// if there is none.
std::string chosen_word(const std::filesystem::path& file);

/// Returns the settings in `folder`, smallest size first. Empty on kernels without such sizes
/// (before Linux 6.8).
std::vector<PageSizeSetting> read_page_sizes(const std::filesystem::path& folder);

/// Measures the cost of first touch for each size that the kernel provides. Takes 2 ms per size.
void measure_page_sizes(std::vector<PageSizeSetting>& sizes);

}  // namespace tensorpool::command
