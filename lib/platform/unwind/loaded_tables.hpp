#pragma once

#include <dlfcn.h>

#include "platform/unwind/table_bytes.hpp"

namespace tensorpool::platform::unwind {

/// What the table says about a group of functions (Linux Standard Base, Exception Frames).
struct Group {
    TableBytes instructions{nullptr, nullptr};  // that begin those of each function
    std::uint64_t code_unit = 1;
    std::int64_t data_unit = 1;
    std::uint8_t address_encoding = 0;
    std::uint8_t return_register = 0;
    bool has_own_data = false;
    bool is_signal_frame = false;  // a signal handler returns to it
};

/// What the table says about one function.
struct Description {
    Group group;
    TableBytes instructions{nullptr, nullptr};
    std::uintptr_t begin = 0;  // of the function
};

/// Reads the unwind tables of the loaded files. Takes no lock: the loader keeps its list so that
/// signal handlers can read it. The tables are those of the file at the time of the call; a file
/// that is unloaded while a stack contains its code is the program's error.
class LoadedTables {
public:
    enum class Code : std::uint8_t {
        unknown,  ///< no file contains the address, or it is not code
        bare,     ///< code without a description
        described,
    };

    /// Finds the function that contains `address`.
    Code find(std::uintptr_t address, Description& to) noexcept;

private:
    bool find_file(std::uintptr_t address) noexcept;
    void find_bounds() noexcept;
    TableBytes headers_of_file() const noexcept;
    bool is_code(std::uintptr_t address) const noexcept;
    const unsigned char* find_entry(std::uintptr_t address) const noexcept;
    bool describe(const unsigned char* entry, std::uintptr_t address, Description& to) noexcept;
    TableBytes bytes_from(const unsigned char* at) const noexcept {
        return at < begin_ || at > end_ ? TableBytes(nullptr, nullptr) : TableBytes(at, end_);
    }

    // The last ones that were found.
    dl_find_object file_{};
    const unsigned char* begin_ = nullptr;  // of what contains the tables, as is the next one
    const unsigned char* end_ = nullptr;
    const unsigned char* group_begin_ = nullptr;
    Group group_;
};

}  // namespace tensorpool::platform::unwind
