#pragma once

/// Pages of a mapped file. Addresses and sizes are multiples of `page_bytes()`; none of these calls
/// raises a signal, whatever becomes of the file.

#include <cstddef>
#include <cstdint>

namespace tensorpool::platform {

/// What became of a wish.
enum class Outcome : std::uint8_t { done, unsupported, refused };

enum class ReadAhead : std::uint8_t { normal, much, none };
/// How much shall be read beside what is touched.
Outcome set_read_ahead(void* address, std::size_t bytes, ReadAhead how_much) noexcept;
/// Begins to read them into memory.
Outcome begin_to_read(void* address, std::size_t bytes) noexcept;
/// Reads them into memory and enters them into the process's page table. `refused` also where some
/// are beyond the end of their file.
Outcome populate_for_reading(void* address, std::size_t bytes) noexcept;
/// Takes them out of the process's page table. They come back at the next touch.
Outcome drop_file_pages(void* address, std::size_t bytes) noexcept;
/// Bytes of them that are in memory; 0 where there is no telling.
std::size_t resident_file_bytes(const void* address, std::size_t bytes) noexcept;

/// Ends their mapping and keeps their addresses: any access faults. False on failure; then they are
/// as they were.
[[nodiscard]] bool bar_file_pages(void* address, std::size_t bytes) noexcept;
/// Ends a whole mapping, what was barred included.
void unmap_file(void* address, std::size_t bytes) noexcept;

}  // namespace tensorpool::platform
