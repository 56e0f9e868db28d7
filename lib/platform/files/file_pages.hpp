#pragma once

/// Pages of a mapped file. Addresses and sizes are multiples of `page_bytes()`. None of these calls
/// raises a signal, even if the file is truncated or removed.

#include <cstddef>
#include <cstdint>

namespace tensorpool::platform {

/// The result of a request to the system.
enum class Outcome : std::uint8_t { done, unsupported, refused };

enum class ReadAhead : std::uint8_t { normal, much, none };
/// Sets how much the system reads ahead of the pages that are touched.
Outcome set_read_ahead(void* address, std::size_t bytes, ReadAhead how_much) noexcept;
/// Starts reading the pages into memory, without waiting for them.
Outcome begin_to_read(void* address, std::size_t bytes) noexcept;
/// Reads the pages into memory and enters them into the page table of the process. Also returns
/// `refused` if some of them are beyond the end of the file.
Outcome populate_for_reading(void* address, std::size_t bytes) noexcept;
/// Removes the pages from the page table of the process. They are mapped again at the next access.
Outcome drop_file_pages(void* address, std::size_t bytes) noexcept;
/// Returns how many bytes of the range are in memory; 0 if that is unknown.
std::size_t resident_file_bytes(const void* address, std::size_t bytes) noexcept;

/// Ends the mapping and keeps its addresses reserved: any access faults. Returns false on failure
/// and then leaves the pages as they were.
[[nodiscard]] bool bar_file_pages(void* address, std::size_t bytes) noexcept;
/// Ends a whole mapping, including pages that were barred.
void unmap_file(void* address, std::size_t bytes) noexcept;

}  // namespace tensorpool::platform
