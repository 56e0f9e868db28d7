#pragma once

/// @file
/// The sizes of pages that the kernel can give, and what it gives.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tensorpool::command {

inline constexpr const char* page_size_folder = "/sys/kernel/mm/transparent_hugepage";

inline constexpr std::uint64_t huge_page_bytes = std::uint64_t{2} << 20;

/// One size of pages larger than the usual one.
struct PageSizeSetting {
    std::uint64_t bytes = 0;
    std::string word;     ///< "always", "inherit", "madvise" or "never"
    bool given = false;   ///< to memory that asks for larger pages
    double fault_ns = 0;  ///< to touch 4 KiB of it for the first time; 0: not measured
};

/// The word in brackets of such a file: `always inherit [madvise] never`. "" where there is none.
std::string chosen_word(const std::filesystem::path& file);

/// The settings in `folder`, smallest size first. Empty where the kernel has no such sizes (before
/// Linux 6.8).
std::vector<PageSizeSetting> read_page_sizes(const std::filesystem::path& folder);

/// Measures what first touch costs in pages of each size that is given; 2 ms a size.
void measure_page_sizes(std::vector<PageSizeSetting>& sizes);

}  // namespace tensorpool::command
