#include "plan/fed_plan.hpp"

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "plan/learned_plan.hpp"

namespace tensorpool::planned::testing {
namespace {

constexpr std::size_t header_bytes = 56;
constexpr std::size_t record_bytes = plan_file_record_bytes;
constexpr std::size_t checksum_bytes = 8;

void require(bool kept, const char* promise) {
    if (!kept) throw std::logic_error(promise);
}

std::uint64_t number_at(const std::string& file, std::size_t at, unsigned bytes) {
    std::uint64_t number = 0;
    for (unsigned i = bytes; i-- > 0;) {
        number = number << 8 | static_cast<unsigned char>(file[at + i]);
    }
    return number;
}

void put(std::string& file, std::size_t at, std::uint64_t number, unsigned bytes) {
    for (unsigned i = 0; i < bytes; ++i) file[at + i] = static_cast<char>(number >> (8 * i));
}

/// Makes a file out of any bytes by correcting all that another number determines, except the size
/// of the plan.
void correct(std::string& file) {
    // The header and the last checksum take as much as two records.
    const std::size_t requests = std::max<std::size_t>(file.size() / record_bytes, 3) - 2;
    file.resize(header_bytes + requests * record_bytes + checksum_bytes);
    file.replace(0, plan_file_magic.size(), plan_file_magic);
    put(file, 8, plan_file_version, 4);
    put(file, 12, plan_file_record_bytes, 4);
    put(file, 16, requests, 8);
    std::vector<Request> sequence;
    for (std::size_t i = 0; i < requests; ++i) {
        const std::size_t at = header_bytes + i * record_bytes;
        sequence.push_back({.bytes = number_at(file, at, 8),
                            .alignment = static_cast<std::uint32_t>(number_at(file, at + 28, 4))});
    }
    put(file, 48, checksum_of(sequence), 8);
    Checksum checksum;
    checksum.add(file.data(), file.size() - checksum_bytes);
    put(file, file.size() - checksum_bytes, checksum.value(), checksum_bytes);
}

/// Makes a file out of four bytes for each buffer: offset, length and alignment in granules, and
/// lifetime. Most such plans have no error but that buffers may overlap.
std::string described(std::span<const std::byte> rest) {
    LearnedPlan plan;
    for (; rest.size() >= 4; rest = rest.subspan(4)) {
        const auto value = [&](std::size_t i) { return std::to_integer<std::uint64_t>(rest[i]); };
        const bool is_planned = value(3) % 8 != 0;
        const auto alignment = static_cast<std::uint32_t>(plan_granule_bytes << value(2) % 4);
        Request request{.bytes = (1 + value(1) % 16) * plan_granule_bytes,
                        .pool_bytes = value(2) * plan_granule_bytes,
                        .alignment = alignment};
        if (is_planned)
            request.end = static_cast<std::uint32_t>(plan.requests.size() + 1 + value(3) / 8);
        const std::uint64_t offset = value(0) % 64 * alignment;
        plan.offsets.push_back(is_planned ? offset : LearnedPlan::no_offset);
        if (is_planned) plan.peak_bytes = std::max(plan.peak_bytes, offset + request.bytes);
        plan.requests.push_back(request);
    }
    const auto requests = static_cast<std::uint32_t>(plan.requests.size());
    for (Request& request : plan.requests) {
        if (request.is_planned()) request.end = std::min(request.end, requests);
    }
    std::ostringstream out;
    write_plan(out, plan);
    return out.str();
}

std::string file_from(std::span<const std::byte> bytes) {
    const std::span<const std::byte> rest = bytes.subspan(1);
    const unsigned kind = std::to_integer<unsigned>(bytes[0]) % 3;
    if (kind == 2) return described(rest);
    std::string file(reinterpret_cast<const char*>(rest.data()), rest.size());
    if (kind == 1) correct(file);
    return file;
}

bool overlap(const LearnedPlan& plan, std::size_t one, std::size_t other) {
    const Request& early = plan.requests[one];
    const Request& late = plan.requests[other];
    return other < early.end && plan.offsets[one] < plan.offsets[other] + late.bytes &&
           plan.offsets[other] < plan.offsets[one] + early.bytes;
}

void check_plan(const LearnedPlan& plan) {
    require(!plan.requests.empty(), "a plan has requests");
    require(plan.offsets.size() == plan.requests.size(), "each request has an offset");
    require(plan.lower_bound_bytes <= plan.peak_bytes, "the bound is at most the peak");
    std::uint64_t peak = 0;
    for (std::size_t i = 0; i < plan.requests.size(); ++i) {
        const Request& request = plan.requests[i];
        require(request.is_planned() == (plan.offsets[i] != LearnedPlan::no_offset),
                "requests without an offset are left to the pool");
        if (!request.is_planned()) continue;
        require(plan.offsets[i] % request.alignment == 0, "buffers are aligned");
        require(request.end > i && request.end <= plan.requests.size(), "buffers end in the plan");
        peak = std::max(peak, plan.offsets[i] + request.bytes);
        for (std::size_t k = 0; k < i; ++k) {
            const bool both = plan.requests[k].is_planned();
            require(!both || !overlap(plan, k, i), "buffers that are alive at once do not overlap");
        }
    }
    require(peak == plan.peak_bytes, "the plan ends where its last buffer ends");
}

void check_error(const std::string& text) {
    require(text.starts_with("tensorpool: plan file 'fed': "), "an error names the file");
    require(text.size() < 500, "an error is short");
    const auto is_printable = [](char c) { return c >= ' ' && c != 0x7f; };
    require(std::all_of(text.begin(), text.end(), is_printable), "an error is one line of text");
}

}  // namespace

bool feed_plan(std::span<const std::byte> bytes) {
    if (bytes.empty()) return false;
    const std::string file = file_from(bytes);
    std::istringstream in(file);
    try {
        const LearnedPlan plan = read_plan(in, "fed");
        check_plan(plan);
        std::ostringstream out;
        write_plan(out, plan);
        require(file.starts_with(out.str()), "a plan is written back to the same bytes");
        return true;
    } catch (const std::logic_error&) {
        throw;
    } catch (const std::runtime_error& error) {
        check_error(error.what());
        return false;
    }
}

}  // namespace tensorpool::planned::testing
