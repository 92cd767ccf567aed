// SPDX-License-Identifier: Apache-2.0

// The SAX parser and the text writer of libxml2 for Swift (Debian: libxml2-dev). Its own headers are not shown: Swift would need their folder, and SAX's
// structure of pointers with macros for its version.
#ifndef CXML2_H
#define CXML2_H

#include <stdint.h>

/// What a document says, in order. Any result but 0 ends the parse. The texts are UTF-8 and valid during the call only.
typedef struct fh_xml_events {
    void *context;
    /// `space` is NULL without a namespace. `declared` has for each namespace that the element declares: prefix, NULL for the default, and name. `attributes` has for each attribute: local name, prefix, namespace, begin and end of its value (SAX2).
    int (*begin)(
        void *context, const char *name, const char *space, int declared_count, const char *const *declared, int attribute_count,
        const uint8_t *const *attributes
    );
    int (*end)(void *context);
    int (*text)(void *context, const char *bytes, int count);
    /// A document type declaration, an entity or a processing instruction. Nothing of it is read further.
    int (*extra)(void *context);
} fh_xml_events;

/// Parses a whole document as UTF-8, whatever it says of its encoding. Opens nothing, loads nothing, knows no entities but the five of XML, builds no tree.
/// 0, or -1 where the document is not well-formed, ended early, or there was no memory.
int fh_xml_parse(const uint8_t *bytes, int count, const fh_xml_events *events);

/// A document that is being written.
typedef struct fh_xml_writer fh_xml_writer;

/// An empty document with its declaration. NULL without memory.
fh_xml_writer *fh_xml_writer_new(void);
/// Each returns 0, or -1. Texts end with 0 and are escaped.
int fh_xml_writer_begin(fh_xml_writer *writer, const char *name);
int fh_xml_writer_attribute(fh_xml_writer *writer, const char *name, const char *value);
int fh_xml_writer_text(fh_xml_writer *writer, const char *text);
int fh_xml_writer_end(fh_xml_writer *writer);
/// What was written so far, valid until the next call.
const uint8_t *fh_xml_writer_bytes(fh_xml_writer *writer, int *count);
void fh_xml_writer_free(fh_xml_writer *writer);

#endif
