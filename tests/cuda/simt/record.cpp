// SPDX-License-Identifier: Apache-2.0
// Writes launches to files: see record.h.
#include "tests/cuda/simt/record.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string>
#include <unistd.h>

#include "tests/cuda/simt/memory.h"

namespace simt {

static const size_t MOST_BYTES = size_t(64) << 20; // of a launch's memory; larger ones are left out

struct piece {
    struct allocation at;
    std::vector<unsigned char> before;
};
static std::vector<struct piece> pieces;
static std::string path; // of the launch under way; empty: it is not recorded

static void find_pieces(const struct launch_record &l) {
    pieces.clear();
    for (size_t i = 0; i + 8 <= l.args.size(); i += 8) {
        uint64_t word;
        memcpy(&word, &l.args[i], sizeof word);
        struct allocation a;
        if (!memory_find(reinterpret_cast<const void *>(word), &a)) continue;
        bool known = false;
        for (const struct piece &p : pieces) known |= p.at.data == a.data;
        if (!known) pieces.push_back({a, {}});
    }
    std::sort(pieces.begin(), pieces.end(),
              [](const struct piece &a, const struct piece &b) { return a.at.data < b.at.data; });
}

// Whether a record of that name is wanted beside those in the folder; a larger one may go for it.
static bool make_room(const std::string &folder, const std::string &kernel,
                      const std::string &name) {
    const char *text = getenv("SIMT_RECORD_MAX");
    const size_t most = text ? strtoul(text, nullptr, 10) : 2;
    DIR *d = opendir(folder.c_str());
    if (!d) return false;
    size_t n = 0;
    std::string largest;
    bool there = false;
    for (struct dirent *e; (e = readdir(d));) {
        const std::string other = e->d_name;
        if (other.compare(0, kernel.size() + 1, kernel + "-") != 0) continue;
        n++;
        there |= other == name;
        largest = std::max(largest, other); // the count of threads has leading zeros
    }
    closedir(d);
    if (there) return false;
    if (n < most) return true;
    if (largest < name) return false;
    return unlink((folder + "/" + largest).c_str()) == 0;
}

void record_before(const struct launch_record &l) {
    path.clear();
    const char *folder = getenv("SIMT_RECORD");
    if (!folder || !*folder || getenv("SIMT_BLOCKS")) return;
    find_pieces(l);
    size_t bytes = 0;
    for (const struct piece &p : pieces) bytes += p.at.bytes;
    const size_t threads =
        size_t(l.grid.x) * l.grid.y * l.grid.z * l.block.x * l.block.y * l.block.z;
    char shape[96];
    snprintf(shape, sizeof shape, "-%012zu-%u.%u.%u-%zu.rec", threads, l.grid.x, l.grid.y, l.grid.z,
             l.shared_bytes);
    if (bytes > MOST_BYTES || !make_room(folder, l.name, std::string(l.name) + shape)) return;
    path = std::string(folder) + "/" + l.name + shape;
    for (struct piece &p : pieces) p.before.assign(p.at.data, p.at.data + p.at.bytes);
}

static bool write_padded(FILE *f, const void *bytes, size_t n) {
    static const char zeros[8] = {0};
    const size_t rest = (8 - n % 8) % 8;
    return fwrite(bytes, 1, n, f) == n && fwrite(zeros, 1, rest, f) == rest;
}
static bool write_piece(FILE *f, const struct piece &p) {
    const std::vector<unsigned char> after(p.at.data, p.at.data + p.at.bytes);
    const uint64_t head[3] = {uintptr_t(p.at.data), p.at.bytes, after != p.before};
    return write_padded(f, head, sizeof head) && write_padded(f, p.before.data(), p.at.bytes) &&
           (!head[2] || write_padded(f, after.data(), p.at.bytes));
}
static bool write_record(FILE *f, const struct launch_record &l) {
    const uint32_t head[12] = {l.grid.x,
                               l.grid.y,
                               l.grid.z,
                               l.block.x,
                               l.block.y,
                               l.block.z,
                               uint32_t(l.shared_bytes),
                               l.pdl,
                               uint32_t(strlen(l.name)),
                               uint32_t(l.args.size()),
                               uint32_t(pieces.size()),
                               0};
    bool ok = write_padded(f, "SIMTREC1", 8) && write_padded(f, head, sizeof head) &&
              write_padded(f, l.name, strlen(l.name)) &&
              write_padded(f, l.args.data(), l.args.size());
    for (const struct piece &p : pieces) ok = ok && write_piece(f, p);
    return ok;
}

void record_after(const struct launch_record &l) {
    if (path.empty()) return;
    FILE *f = fopen(path.c_str(), "wb");
    bool ok = f && write_record(f, l);
    if (f) ok = fclose(f) == 0 && ok;
    if (!ok) fail({__FILE__, __LINE__}, "cannot write %s", path.c_str());
    path.clear();
}

} // namespace simt
