/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors: the length of a JSON header (8 bytes, little-endian), the header, the tensors'
 * bytes; and config.json beside it. Source: the README of the safetensors project. */
#include <cjson/cJSON.h>
#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "workloads/model/file_json.h"
#include "workloads/model/file_parts.h"
#include "workloads/model/stored.h"

enum { MOST_HEADER = 32 << 20, MOST_CONFIG = 1 << 20, MOST_ITEMS = 1 << 19 };

/* A whole number from 0 to 2^53, up to where doubles hold each. */
static bool whole(const cJSON *v, uint64_t *out) {
    if (!cJSON_IsNumber(v) || !(v->valuedouble >= 0) || v->valuedouble > 0x1p53 ||
        v->valuedouble != floor(v->valuedouble))
        return false;
    *out = (uint64_t)v->valuedouble;
    return true;
}

/* ---- tensors ----------------------------------------------------------------------------------
 */

static int bad(const struct file_part *part, const char *name, const char *why, struct err *err) {
    return err_set(err, ERR_INPUT, "%s: tensor '%.80s': %s", part->name, name, why);
}

static int read_tensor(struct model_file *file, int index, const cJSON *item, int64_t base,
                       struct err *err) {
    const struct file_part *part = &file->parts[index];
    const char *name = item->string ? item->string : "";
    const cJSON *dtype = cJSON_GetObjectItemCaseSensitive(item, "dtype"),
                *shape = cJSON_GetObjectItemCaseSensitive(item, "shape"),
                *place = cJSON_GetObjectItemCaseSensitive(item, "data_offsets");
    uint64_t dims[4] = {1}, begin, end;
    const int n = cJSON_GetArraySize(shape);
    if (!*name || strlen(name) > FILE_MOST_NAME)
        return bad(part, name, "names have 1 ... 255 bytes", err);
    if (!cJSON_IsString(dtype) || !cJSON_IsArray(shape) || !cJSON_IsArray(place) ||
        cJSON_GetArraySize(place) != 2)
        return bad(part, name, "needs dtype, shape and two data_offsets", err);
    struct file_tensor t = {.part = index, .n_dims = n ? n : 1};
    t.stored = stored_of_word(dtype->valuestring);
    if (t.stored < 0)
        return err_set(err, ERR_INPUT, "%s: tensor '%.80s' is stored as %.20s; read are %s",
                       part->name, name, dtype->valuestring, STORED_READ_WORDS);
    if (n > 4) return bad(part, name, "has more than 4 dimensions", err);
    for (int i = 0; i < n; i++) /* the last dimension lies side by side */
        if (!whole(cJSON_GetArrayItem(shape, n - 1 - i), &dims[i]))
            return bad(part, name, "dimensions are whole numbers", err);
    if (!whole(cJSON_GetArrayItem(place, 0), &begin) || !whole(cJSON_GetArrayItem(place, 1), &end))
        return bad(part, name, "data_offsets are whole numbers", err);
    t.name = arena_text(file->arena, name);
    int code = file_add_tensor(file, t, dims, base, begin, err);
    if (!code && end - begin != (uint64_t)file->tensors[file->n_tensors - 1].bytes)
        return bad(part, name, "data_offsets do not hold its shape", err);
    return code;
}

int file_open_safetensors(struct model_file *file, int index, struct err *err) {
    struct file_part *part = &file->parts[index];
    uint8_t head[8];
    uint64_t n = 0;
    cJSON *document = NULL;
    if (part->size < 8)
        return err_set(err, ERR_INPUT, "%s ends in the middle of its header's length", part->name);
    int code = file_read_at(part, 0, head, 8, err);
    for (int i = 0; i < 8; i++) n |= (uint64_t)head[i] << 8 * i;
    if (code) return code;
    if (n > MOST_HEADER || (int64_t)n > part->size - 8)
        return err_set(err, ERR_INPUT,
                       "%s: a header of %llu bytes is longer than the file or %d bytes", part->name,
                       (unsigned long long)n, MOST_HEADER);
    char what[300];
    snprintf(what, sizeof what, "the header of %.255s", part->name);
    char *data = must_alloc(n + 1);
    code = file_read_at(part, 8, data, (int64_t)n, err);
    if (!code) code = file_json_parse(data, n, what, MOST_ITEMS, &document, err);
    free(data);
    const cJSON *item;
    if (!code) cJSON_ArrayForEach(item, document) {
            if (item->string && !strcmp(item->string, "__metadata__")) continue;
            code = read_tensor(file, index, item, 8 + (int64_t)n, err);
            if (code) break;
        }
    cJSON_Delete(document);
    return code;
}

/* ---- config.json ------------------------------------------------------------------------------
 */

static int flatten(struct model_file *file, const cJSON *object, const char *prefix,
                   struct err *err) {
    const cJSON *item;
    int code = 0;
    cJSON_ArrayForEach(item, object) {
        const char *key = arena_printf(file->arena, "%s%s%s", prefix, *prefix ? "." : "",
                                       item->string ? item->string : "");
        if (cJSON_IsNull(item)) continue; /* as if it were not there */
        struct file_value *v = file_add_value(file, err);
        if (!v) return ERR_INPUT;
        v->key = key;
        v->kind = FILE_ARRAY; /* of elements, or of members */
        if (cJSON_IsNumber(item)) {
            const bool is_whole =
                item->valuedouble == floor(item->valuedouble) && fabs(item->valuedouble) <= 0x1p53;
            v->kind = is_whole ? FILE_INT : FILE_REAL;
            v->real = item->valuedouble;
            v->integer = is_whole ? (int64_t)item->valuedouble : 0;
        } else if (cJSON_IsBool(item)) {
            v->kind = FILE_FLAG;
            v->integer = cJSON_IsTrue(item);
        } else if (cJSON_IsString(item)) {
            v->kind = FILE_TEXT;
            v->count = (int64_t)strlen(item->valuestring);
            v->text = v->count <= FILE_MOST_TEXT ? arena_text(file->arena, item->valuestring) : "";
        } else {
            v->count = cJSON_GetArraySize(item);
        }
        if (cJSON_IsObject(item)) code = flatten(file, item, key, err);
        if (code) return code;
    }
    return code;
}

int file_read_config(struct model_file *file, const char *path, struct err *err) {
    char *data = NULL;
    size_t n = 0;
    cJSON *document = NULL;
    int code = file_read(path, MOST_CONFIG, &data, &n, err);
    if (!code) code = file_json_parse(data, n, path, MOST_ITEMS, &document, err);
    if (!code) code = flatten(file, document, "", err);
    cJSON_Delete(document);
    free(data);
    return code;
}

/* ---- a folder ---------------------------------------------------------------------------------
 */

static int is_tensors(const struct dirent *entry) {
    const size_t n = strlen(entry->d_name);
    return n > 12 && entry->d_name[0] != '.' && !strcmp(entry->d_name + n - 12, ".safetensors");
}

static int join(char *out, size_t size, const char *folder, const char *name, struct err *err) {
    const int n = snprintf(out, size, "%s/%s", folder, name);
    if (n >= 0 && (size_t)n < size) return 0;
    return err_set(err, ERR_INPUT, "the path is longer than %zu bytes", size);
}

int file_open_folder(struct model_file *file, const char *folder, struct err *err) {
    char path[PATH_MAX];
    struct dirent **names = NULL;
    int part = 0, code = join(path, sizeof path, folder, "config.json", err);
    if (!code && !file_exists(path))
        return err_set(err, ERR_INPUT, "the folder %s has no config.json", folder);
    if (!code) code = file_read_config(file, path, err);
    if (code) return code;
    const int n = scandir(folder, &names, is_tensors, alphasort);
    for (int i = 0; i < n; i++) {
        if (!code) code = join(path, sizeof path, folder, names[i]->d_name, err);
        if (!code) code = file_add_part(file, path, &part, err);
        if (!code) code = file_open_safetensors(file, part, err);
        free(names[i]);
    }
    free(names);
    if (!code && n <= 0)
        return err_set(err, ERR_INPUT, "the folder %s has no *.safetensors", folder);
    return code;
}
