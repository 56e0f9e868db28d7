#pragma once

#include <boost/crc.hpp>
#include <cstddef>
#include <cstdint>

namespace tensorpool::planned {

/// CRC-64/XZ of bytes and of 64-bit words. Words count as little-endian on every machine.
class Checksum {
public:
    void add(std::uint64_t word) {
        for (unsigned shift = 0; shift != 64; shift += 8) {
            crc_.process_byte(static_cast<unsigned char>(word >> shift));
        }
    }
    void add(const void* bytes, std::size_t count) { crc_.process_bytes(bytes, count); }
    std::uint64_t value() const { return crc_.checksum(); }

private:
    boost::crc_optimal<64, 0x42F0E1EBA9EA3693, UINT64_MAX, UINT64_MAX, true, true> crc_;
};

}  // namespace tensorpool::planned
