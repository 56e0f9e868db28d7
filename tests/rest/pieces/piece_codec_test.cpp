#include "rest/pieces/piece_codec.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "rest/pieces/workspace_memory.hpp"

namespace tensorpool::stashing {
namespace {

using Bytes = std::vector<std::byte>;
using Generator = std::mt19937_64;

Bytes encode(const Bytes& piece, const DataType& type, PieceWorkspace& workspace) {
    Bytes out(max_encoded_bytes(piece.size()));
    out.resize(encode_piece(piece, type, out, workspace));
    return out;
}

const std::vector<DataType>& types() {
    static const std::vector<DataType> all = {
        DataType(),
        DataType::of<std::int8_t>(),
        DataType::of<std::uint16_t>(),
        DataType::of<std::int32_t>(),
        DataType::of<std::int64_t>(),
        DataType::of<bool>(),
        DataType::of<float>(),
        DataType::of<double>(),
        DataType::of<std::complex<float>>(),
        {.code = DataCode::floating, .bits = 16},
        {.code = DataCode::bfloat, .bits = 16},
        {.code = DataCode::float8_e5m2, .bits = 8},
        {.code = DataCode::opaque, .bits = 96},
        *find_ggml_type("Q4_K"),
    };
    return all;
}

/// Returns numbers near 0 as trained weights are, in the upper bytes of an element.
Bytes weights(std::size_t bytes, std::size_t kept, Generator& generator) {
    std::normal_distribution<float> value(0, 0.02F);
    Bytes all(bytes);
    for (std::size_t i = 0; i + kept <= bytes; i += kept) {
        const float number = value(generator);
        std::memcpy(&all[i], reinterpret_cast<const char*>(&number) + 4 - kept, kept);
    }
    return all;
}

Bytes random_bytes(std::size_t bytes, unsigned symbols, Generator& generator) {
    Bytes all(bytes);
    for (std::byte& byte : all) byte = static_cast<std::byte>(generator() % symbols);
    return all;
}

Bytes repeated(std::size_t bytes, std::size_t period, Generator& generator) {
    Bytes all = random_bytes(bytes, 256, generator);
    for (std::size_t i = period; i < bytes; ++i) all[i] = all[i - period];
    return all;
}

std::vector<Bytes> contents(std::size_t bytes, Generator& generator) {
    return {Bytes(bytes),
            Bytes(bytes, std::byte{0xFF}),
            weights(bytes, 4, generator),
            weights(bytes, 2, generator),
            random_bytes(bytes, 256, generator),
            random_bytes(bytes, 2, generator),
            random_bytes(bytes, 40, generator),
            repeated(bytes, 18, generator),
            repeated(bytes, 4, generator)};
}

TEST(PieceCodec, AnyBytesOfAnyTypeComeBackExactly) {
    Generator generator(1);
    OwnedWorkspace workspace(max_piece_bytes);
    for (const std::size_t bytes : {1, 2, 3, 7, 8, 9, 63, 1000, 65'536, 65'537, 1'048'576}) {
        for (const Bytes& piece : contents(bytes, generator)) {
            for (const DataType& type : types()) {
                const Bytes encoded = encode(piece, type, *workspace);
                ASSERT_LE(encoded.size(), max_encoded_bytes(bytes));
                Bytes back(bytes, std::byte{0x5A});
                ASSERT_TRUE(decode_piece(encoded, back, *workspace))
                    << to_string(type) << ", " << bytes << " bytes";
                ASSERT_TRUE(back == piece) << to_string(type) << ", " << bytes << " bytes";
            }
        }
    }
}

TEST(PieceCodec, PayloadsOfNanAndSignsOfZeroSurvive) {
    std::vector<std::uint32_t> bits(16'384);
    Generator generator(2);
    for (std::uint32_t& word : bits) {
        const std::uint32_t special[] = {
            0x7FC00000U | static_cast<std::uint32_t>(generator() & 0x3FFFFFU),
            0x80000000U,
            0U,
            0x7F800001U,
            0xFF800000U,
            0x00000001U};
        word = special[generator() % 6];
    }
    Bytes piece(bits.size() * 4);
    std::memcpy(piece.data(), bits.data(), piece.size());
    OwnedWorkspace workspace(piece.size());
    Bytes back(piece.size());
    ASSERT_TRUE(decode_piece(encode(piece, DataType::of<float>(), *workspace), back, *workspace));
    EXPECT_TRUE(back == piece);
}

TEST(PieceCodec, ConstantPiecesTakeNoRoom) {
    OwnedWorkspace workspace(65'536);
    for (const DataType& type : types()) {
        EXPECT_LE(encode(Bytes(65'536), type, *workspace).size(), 56U) << to_string(type);
    }
    Bytes ones(65'536);
    for (std::size_t i = 0; i < ones.size(); i += 4) {
        const float one = 1;
        std::memcpy(&ones[i], &one, 4);
    }
    EXPECT_LE(encode(ones, DataType::of<float>(), *workspace).size(), 36U);
}

TEST(PieceCodec, WeightsShrinkByTheEntropyOfTheirExponents) {
    Generator generator(3);
    OwnedWorkspace workspace(65'536);
    const DataType bfloat = {.code = DataCode::bfloat, .bits = 16};
    EXPECT_LT(encode(weights(65'536, 2, generator), bfloat, *workspace).size(), 65'536 * 0.68);
    EXPECT_LT(encode(weights(65'536, 4, generator), DataType::of<float>(), *workspace).size(),
              65'536 * 0.85);
}

TEST(PieceCodec, FloatsOfFewValuesShrinkByTheirRepetitions) {
    Generator generator(9);
    OwnedWorkspace workspace(65'536);
    // Pixels of three channels divided by 255, in rows of 1,000 that differ little.
    std::vector<float> row(3000);
    for (float& value : row) value = static_cast<float>(generator() % 256) / 255;
    Bytes piece(65'536);
    for (std::size_t i = 0; i < piece.size() / 4; ++i) {
        if (generator() % 64 == 0)
            row[i % row.size()] = static_cast<float>(generator() % 256) / 255;
        std::memcpy(&piece[4 * i], &row[i % row.size()], 4);
    }
    EXPECT_LT(encode(piece, DataType::of<float>(), *workspace).size(), piece.size() / 2);
}

TEST(PieceCodec, CountersShrinkByTheirPlanes) {
    OwnedWorkspace workspace(65'536);
    std::vector<std::uint32_t> numbers(16'384);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::uint32_t>(i);
    Bytes piece(65'536);
    std::memcpy(piece.data(), numbers.data(), piece.size());
    EXPECT_LT(encode(piece, DataType::of<std::uint32_t>(), *workspace).size(), piece.size() / 32);
}

TEST(PieceCodec, RandomBytesGrowByTheHeaderOnly) {
    Generator generator(4);
    OwnedWorkspace workspace(65'536);
    for (const DataType& type : types()) {
        const Bytes piece = random_bytes(65'536, 256, generator);
        EXPECT_LE(encode(piece, type, *workspace).size(), 65'536U + 48) << to_string(type);
    }
}

TEST(PieceCodec, AnyFlippedBitIsNoticed) {
    Generator generator(5);
    OwnedWorkspace workspace(700);
    for (const Bytes& piece : contents(700, generator)) {
        for (const DataType& type : {DataType(), DataType::of<float>(), types()[10]}) {
            const Bytes encoded = encode(piece, type, *workspace);
            Bytes back(piece.size());
            for (std::size_t bit = 0; bit < encoded.size() * 8; ++bit) {
                Bytes damaged = encoded;
                damaged[bit / 8] ^= std::byte{1} << (bit % 8);
                // A frame of zstd has bits that mean nothing: the piece is then right.
                if (decode_piece(damaged, back, *workspace)) {
                    ASSERT_TRUE(back == piece) << "bit " << bit;
                }
            }
        }
    }
}

/// Changes an encoding in one of several ways.
void mutate(Bytes& encoded, Generator& generator) {
    switch (generator() % 4) {
        case 0:
            encoded.resize(generator() % (encoded.size() + 1));
            break;
        case 1:
            encoded.resize(encoded.size() + 1 + generator() % 64, std::byte{7});
            break;
        case 2:
            for (int i = 0; i < 8; ++i)
                encoded[generator() % encoded.size()] = static_cast<std::byte>(generator());
            break;
        default:
            // The header and the words of the planes.
            encoded[generator() % std::min<std::size_t>(encoded.size(), 48)] =
                static_cast<std::byte>(generator());
    }
}

TEST(PieceCodec, MutatedEncodingsNeverYieldWrongBytes) {
    Generator generator(6);
    OwnedWorkspace workspace(8192);
    int refused = 0;
    for (int round = 0; round < 100; ++round) {
        const std::size_t bytes = 1 + generator() % 8192;
        for (const Bytes& piece : contents(bytes, generator)) {
            const DataType& type = types()[generator() % types().size()];
            Bytes encoded = encode(piece, type, *workspace);
            mutate(encoded, generator);
            // Exactly as large as the encoding, so that a sanitizer finds a read behind it.
            const Bytes exact = encoded;
            Bytes back(bytes);
            if (decode_piece(exact, back, *workspace)) {
                ASSERT_TRUE(back == piece);
            } else {
                ++refused;
            }
        }
    }
    EXPECT_GT(refused, 750);
}

TEST(PieceCodec, RandomBytesAreNoEncoding) {
    Generator generator(7);
    OwnedWorkspace workspace(4096);
    Bytes back(4096);
    for (int round = 0; round < 5000; ++round) {
        EXPECT_FALSE(
            decode_piece(random_bytes(generator() % 300, 256, generator), back, *workspace));
    }
    EXPECT_FALSE(decode_piece({}, back, *workspace));
}

TEST(PieceCodec, EncodingsOfAnotherLengthAreRefused) {
    Generator generator(8);
    OwnedWorkspace workspace(301);
    for (const Bytes& piece : contents(301, generator)) {
        for (const DataType& type : types()) {
            const Bytes encoded = encode(piece, type, *workspace);
            Bytes back(piece.size());
            for (std::size_t bytes = 0; bytes < encoded.size(); ++bytes) {
                const Bytes cut(encoded.begin(), encoded.begin() + static_cast<long>(bytes));
                ASSERT_FALSE(decode_piece(cut, back, *workspace)) << bytes;
            }
            Bytes longer = encoded;
            longer.push_back(std::byte{0});
            ASSERT_FALSE(decode_piece(longer, back, *workspace));
        }
    }
}

TEST(PieceCodec, AnotherSizeIsRefused) {
    OwnedWorkspace workspace(4096);
    const Bytes encoded = encode(Bytes(4000), DataType(), *workspace);
    Bytes smaller(3999);
    Bytes larger(4001);
    Bytes too_large(8192);
    EXPECT_FALSE(decode_piece(encoded, smaller, *workspace));
    EXPECT_FALSE(decode_piece(encoded, larger, *workspace));
    EXPECT_FALSE(decode_piece(encoded, too_large, *workspace));
    EXPECT_FALSE(decode_piece(encoded, {}, *workspace));
}

}  // namespace
}  // namespace tensorpool::stashing
