#pragma once

#include <dlfcn.h>

#include <cstdint>

#include "platform/unwind/table_bytes.hpp"

namespace tensorpool::platform::unwind {

/// What the table says about one function (Linux Standard Base, Exception Frames).
struct Description {
    TableBytes common{nullptr, nullptr};        // instructions of all functions of its group
    TableBytes instructions{nullptr, nullptr};  // its own
    std::uintptr_t begin = 0;                   // of the function
    std::uint64_t code_unit = 1;
    std::int64_t data_unit = 1;
    std::uint8_t address_encoding = 0;
    std::uint8_t return_register = 0;
    bool has_own_data = false;
    bool is_signal_frame = false;  // a signal handler returns to it
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
    bool is_code(std::uintptr_t address) const noexcept;
    const unsigned char* find_entry(std::uintptr_t address) const noexcept;
    bool describe(const unsigned char* entry, std::uintptr_t address, Description& to) noexcept;
    TableBytes bytes_from(const unsigned char* at) const noexcept;

    dl_find_object file_{};  // the last one that was found
};

}  // namespace tensorpool::platform::unwind
