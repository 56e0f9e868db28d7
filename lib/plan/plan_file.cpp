#include "plan/learned_plan.hpp"

#include <array>
#include <istream>
#include <ostream>
#include <stdexcept>

namespace tensorpool::planned {
namespace {

class Writer {
public:
    explicit Writer(std::ostream& out) : out_(out) {}

    void text(std::string_view bytes) {
        checksum_.add(bytes.data(), bytes.size());
        out_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    }
    void number(std::uint64_t value, unsigned bytes = 8) {
        std::array<char, 8> little = {};
        for (unsigned i = 0; i < bytes; ++i) little[i] = static_cast<char>(value >> (8 * i));
        text({little.data(), bytes});
    }
    std::uint64_t checksum() const { return checksum_.value(); }

private:
    std::ostream& out_;
    Checksum checksum_;
};

/// Reads fields one after another. Messages name the last field and its position.
class Reader {
public:
    Reader(std::istream& in, const std::string& name) : in_(in), name_(name) {}

    std::string text(const std::string& field, std::size_t bytes) {
        field_ = field;
        begin_ = end_;
        std::string read(bytes, '\0');
        in_.read(read.data(), static_cast<std::streamsize>(bytes));
        if (in_.gcount() != static_cast<std::streamsize>(bytes)) {
            refuse("the file ends; expected " + std::to_string(bytes) + " B");
        }
        checksum_.add(read.data(), bytes);
        end_ += bytes;
        return read;
    }
    std::uint64_t number(const std::string& field, std::size_t bytes = 8) {
        const std::string read = text(field, bytes);
        value_ = 0;
        for (std::size_t i = bytes; i-- > 0;) {
            value_ = value_ << 8 | static_cast<unsigned char>(read[i]);
        }
        return value_;
    }
    /// Rejects the file unless `holds`, with a message about the last number read.
    void require(bool holds, const std::string& expected) const {
        if (!holds) refuse(std::to_string(value_) + "; expected " + expected);
    }
    [[noreturn]] void refuse(const std::string& problem) const {
        throw std::runtime_error("tensorpool: plan file '" + name_ + "': " + field_ + " at byte " +
                                 std::to_string(begin_) + ": " + problem);
    }
    std::uint64_t checksum() const { return checksum_.value(); }

private:
    std::istream& in_;
    const std::string& name_;
    Checksum checksum_;
    std::string field_;
    std::uint64_t value_ = 0;
    std::uint64_t begin_ = 0;  // position of the last field in the file
    std::uint64_t end_ = 0;
};

struct Header {
    std::uint64_t requests;
    std::uint64_t peak_bytes;
    std::uint64_t lower_bound_bytes;
    std::uint64_t pool_peak_bytes;
    std::uint64_t sequence;
};

Header read_header(Reader& reader) {
    if (reader.text("magic", plan_file_magic.size()) != plan_file_magic) {
        reader.refuse("this is not a plan file");
    }
    const auto expect = [&](const char* field, std::uint64_t expected) {
        reader.require(reader.number(field, 4) == expected, std::to_string(expected));
    };
    expect("version", plan_file_version);
    expect("bytes of a record", plan_file_record_bytes);
    Header header{};
    header.requests = reader.number("requests");
    reader.require(header.requests - 1 < max_requests, "1 to " + std::to_string(max_requests));
    header.peak_bytes = reader.number("bytes of the plan");
    reader.require(header.peak_bytes <= max_request_bytes,
                   "at most " + std::to_string(max_request_bytes));
    header.lower_bound_bytes = reader.number("lower bound");
    reader.require(header.lower_bound_bytes <= header.peak_bytes,
                   "at most " + std::to_string(header.peak_bytes) + ", the bytes of the plan");
    header.pool_peak_bytes = reader.number("bytes of the pool's blocks");
    header.sequence = reader.number("checksum of the sequence");
    return header;
}

/// A request that is left to the pool is marked in two fields, offset and end, which must agree.
void read_request(Reader& reader, const Header& header, LearnedPlan& plan) {
    const std::size_t number = plan.requests.size();
    const std::string name = "request " + std::to_string(number) + ": ";
    Request request;
    request.bytes = reader.number(name + "bytes");
    reader.require(request.bytes - 1 < max_request_bytes &&
                       base::is_aligned(request.bytes, plan_granule_bytes),
                   "a multiple of 64 from 64 to " + std::to_string(max_request_bytes));
    const std::uint64_t offset = reader.number(name + "offset");
    const bool is_planned = offset != LearnedPlan::no_offset;
    reader.require(!is_planned || (request.bytes <= header.peak_bytes &&
                                   offset <= header.peak_bytes - request.bytes),
                   "less, so that its " + std::to_string(request.bytes) + " B lie within the " +
                       std::to_string(header.peak_bytes) + " B of the plan");
    request.pool_bytes = reader.number(name + "bytes of the pool's block");
    reader.require(request.pool_bytes <= 2 * max_request_bytes,
                   "at most " + std::to_string(2 * max_request_bytes));
    request.end = static_cast<std::uint32_t>(reader.number(name + "end", 4));
    reader.require(is_planned ? request.end > number && request.end <= header.requests
                              : request.end == Request::outlives,
                   is_planned ? "more than its own number, and at most the number of requests"
                              : "2^32 - 1, because it has no offset");
    request.alignment = static_cast<std::uint32_t>(reader.number(name + "alignment", 4));
    reader.require(std::has_single_bit(request.alignment) &&
                       request.alignment >= plan_granule_bytes &&
                       request.alignment <= max_request_alignment,
                   "a power of two from 64 to " + std::to_string(max_request_alignment));
    plan.requests.push_back(request);
    plan.offsets.push_back(offset);
}

void check_peak(const LearnedPlan& plan, const std::string& name) {
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < plan.requests.size(); ++i) {
        if (!plan.requests[i].is_planned()) continue;
        end = std::max(end, plan.offsets[i] + plan.requests[i].bytes);
    }
    if (end == plan.peak_bytes) return;
    throw std::runtime_error("tensorpool: plan file '" + name +
                             "': bytes of the plan: " + std::to_string(plan.peak_bytes) +
                             "; expected " + std::to_string(end) + ", where the last buffer ends");
}

// Checks alignment and overlap with `validate`, which shares no code with the planner.
void check_plan(const LearnedPlan& plan, const std::string& name) {
    try {
        validate(lifetimes_of(plan.requests), memory_plan_of(plan));
    } catch (const std::invalid_argument& problem) {
        throw std::runtime_error("tensorpool: plan file '" + name + "': " + problem.what());
    }
}

}  // namespace

void write_plan(std::ostream& out, const LearnedPlan& plan) {
    Writer writer(out);
    writer.text(plan_file_magic);
    writer.number(plan_file_version, 4);
    writer.number(plan_file_record_bytes, 4);
    writer.number(plan.requests.size());
    writer.number(plan.peak_bytes);
    writer.number(plan.lower_bound_bytes);
    writer.number(plan.pool_peak_bytes);
    writer.number(checksum_of(plan.requests));
    for (std::size_t i = 0; i < plan.requests.size(); ++i) {
        writer.number(plan.requests[i].bytes);
        writer.number(plan.offsets[i]);
        writer.number(plan.requests[i].pool_bytes);
        writer.number(plan.requests[i].end, 4);
        writer.number(plan.requests[i].alignment, 4);
    }
    writer.number(writer.checksum());
    if (!out.flush())
        throw std::runtime_error("tensorpool: a plan could not be written completely");
}

LearnedPlan read_plan(std::istream& in, const std::string& name) {
    Reader reader(in, name);
    const Header header = read_header(reader);
    LearnedPlan plan{.requests = {}, .offsets = {}};
    plan.peak_bytes = header.peak_bytes;
    plan.lower_bound_bytes = header.lower_bound_bytes;
    plan.pool_peak_bytes = header.pool_peak_bytes;
    for (std::uint64_t i = 0; i < header.requests; ++i) read_request(reader, header, plan);
    const std::uint64_t checksum = reader.checksum();
    reader.require(reader.number("checksum of the file") == checksum, std::to_string(checksum));
    const std::uint64_t sequence = checksum_of(plan.requests);
    if (sequence != header.sequence) {
        throw std::runtime_error("tensorpool: plan file '" + name +
                                 "': checksum of the sequence: " + std::to_string(header.sequence) +
                                 "; expected " + std::to_string(sequence) +
                                 ", that of its requests");
    }
    check_peak(plan, name);
    check_plan(plan, name);
    return plan;
}

}  // namespace tensorpool::planned
