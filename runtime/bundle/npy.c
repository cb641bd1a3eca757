#include "npy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PREFIX_BYTES = 10, MOST_HEADER = 4096 };

static const char MAGIC[] = "\x93NUMPY";

/* How numpy writes the element types, by their numbers; of those that it does not know it writes the size. */
static const char *const DESCRIPTIONS[] = {
    "",    "<f2", "<f4", "<f8", "<V2", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4",
    "<u8", "|b1", "|V1", "|V1", "|V1", "|V1", "|V1", "|V1", "|V1", "|V1", "|V1", "|V1",
};

static char *file_content(const char *path, size_t *bytes) {
    FILE *file = fopen(path, "rb");
    char *data = NULL;
    long size;
    if (file == NULL)
        return NULL;
    if (fseek(file, 0, SEEK_END) == 0 && (size = ftell(file)) >= 0 && fseek(file, 0, SEEK_SET) == 0 &&
        (data = malloc((size_t)size + 1)) != NULL) {
        *bytes = fread(data, 1, (size_t)size, file);
        if (*bytes != (size_t)size) {
            free(data);
            data = NULL;
        }
    }
    fclose(file);
    return data;
}

/* Reads `(1, 3, 224, 224)`. */
static int read_shape(const char *text, array *read) {
    text = strchr(text, '(');
    if (text == NULL)
        return 0;
    for (++text;; ++text) {
        char *end;
        text += strspn(text, " ");
        if (*text == ')')
            return 1;
        read->shape[read->rank] = strtoll(text, &end, 10);
        if (end == text || ++read->rank >= SMARTMEM_MAX_RANK)
            return 0;
        text = end + strspn(end, " ");
        if (*text == ')')
            return 1;
        if (*text != ',')
            return 0;
    }
}

/* Names both types as numpy does; the text counts until the next call. */
static const char *other_type(const char *found, const char *wanted) {
    static char said[96];
    snprintf(said, sizeof said, "has elements of type '%.*s', and those of the input are '%s'",
             (int)strcspn(found, "'"), found, wanted);
    return said;
}

static const char *read_header(char *header, smartmem_element element, array *read) {
    const char *type = strstr(header, "'descr':"), *order = strstr(header, "'fortran_order':"),
               *shape = strstr(header, "'shape':");
    if (type == NULL || order == NULL || shape == NULL)
        return "is no .npy file that this program reads";
    if (strncmp(order + 16 + strspn(order + 16, " "), "False", 5) != 0)
        return "has its columns first; write numpy.ascontiguousarray(...)";
    type += 8 + strspn(type + 8, " ");
    const char *wanted = DESCRIPTIONS[element], *given = type + (*type == '\'');
    /* `|V2` and `<V2` are the same */
    if (*type++ != '\'' || strncmp(type + 1, wanted + 1, strlen(wanted + 1)) != 0 ||
        type[1 + strlen(wanted + 1)] != '\'' || *type == '>')
        return other_type(given, wanted);
    return read_shape(shape, read) ? NULL : "has a shape that this program cannot read";
}

const char *npy_read(const char *path, smartmem_element element, array *read) {
    memset(read, 0, sizeof *read);
    read->data = file_content(path, &read->bytes);
    if (read->data == NULL)
        return "cannot be read";
    if (read->bytes < PREFIX_BYTES || memcmp(read->data, MAGIC, 6) != 0)
        return NULL;
    const unsigned char *head = (const unsigned char *)read->data;
    size_t length = head[6] == 1 ? head[8] | (size_t)head[9] << 8 : MOST_HEADER + 1;
    if (length > MOST_HEADER || length > read->bytes - PREFIX_BYTES)
        return "is no .npy file that this program reads";
    char header[MOST_HEADER + 1] = {0};
    memcpy(header, read->data + PREFIX_BYTES, length);
    const char *wrong = read_header(header, element, read);
    read->has_shape = 1;
    read->bytes -= PREFIX_BYTES + length;
    memmove(read->data, read->data + PREFIX_BYTES + length, read->bytes);
    return wrong;
}

const char *npy_write(const char *path, const smartmem_output *output) {
    char header[1024];
    int at = snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                      DESCRIPTIONS[output->element]);
    for (uint32_t i = 0; i < output->rank; ++i)
        at += snprintf(header + at, sizeof header - (size_t)at, "%lld, ", (long long)output->shape[i]);
    at += snprintf(header + at, sizeof header - (size_t)at, "), }");
    while ((at + PREFIX_BYTES + 1) % 64)
        header[at++] = ' ';
    header[at++] = '\n';
    const unsigned char sizes[4] = {1, 0, (unsigned char)at, (unsigned char)(at >> 8)};
    FILE *file = fopen(path, "wb");
    if (file == NULL)
        return "cannot be written";
    int good = fwrite(MAGIC, 1, 6, file) == 6 && fwrite(sizes, 1, 4, file) == 4 &&
               fwrite(header, 1, (size_t)at, file) == (size_t)at &&
               (!output->bytes || fwrite(output->data, 1, output->bytes, file) == output->bytes);
    return fclose(file) == 0 && good ? NULL : "cannot be written whole";
}
