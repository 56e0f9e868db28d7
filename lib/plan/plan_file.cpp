#include "plan/plan_file.hpp"

#include <array>
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

}  // namespace tensorpool::planned
