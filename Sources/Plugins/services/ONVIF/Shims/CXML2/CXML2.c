// SPDX-License-Identifier: Apache-2.0

#include "CXML2.h"

#include <libxml/parser.h>
#include <libxml/parserInternals.h>
#include <libxml/xmlwriter.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct parse {
    xmlParserCtxtPtr parser;
    const fh_xml_events *events;
    int is_over;
} parse;

static void heed(parse *parse, int result) {
    if (result == 0 || parse->is_over) return;
    parse->is_over = 1;
    xmlStopParser(parse->parser);
}

static void on_begin(
    void *context, const xmlChar *name, const xmlChar *prefix, const xmlChar *space, int space_count, const xmlChar **spaces, int attribute_count,
    int defaulted_count, const xmlChar **attributes
) {
    (void)prefix;
    (void)defaulted_count;
    parse *const parse = context;
    if (parse->is_over) return;
    heed(
        parse, parse->events->begin(
                   parse->events->context, (const char *)name, (const char *)space, space_count, (const char *const *)spaces, attribute_count,
                   (const uint8_t *const *)attributes));
}

static void on_end(void *context, const xmlChar *name, const xmlChar *prefix, const xmlChar *space) {
    (void)name;
    (void)prefix;
    (void)space;
    parse *const parse = context;
    if (!parse->is_over) heed(parse, parse->events->end(parse->events->context));
}

static void on_text(void *context, const xmlChar *text, int count) {
    parse *const parse = context;
    if (!parse->is_over) heed(parse, parse->events->text(parse->events->context, (const char *)text, count));
}

static void on_extra(parse *parse) {
    if (!parse->is_over) heed(parse, parse->events->extra(parse->events->context));
}

static void on_type(void *context, const xmlChar *name, const xmlChar *external, const xmlChar *system) {
    (void)name;
    (void)external;
    (void)system;
    on_extra(context);
}

static void on_instruction(void *context, const xmlChar *target, const xmlChar *data) {
    (void)target;
    (void)data;
    on_extra(context);
}

static void on_reference(void *context, const xmlChar *name) {
    (void)name;
    on_extra(context);
}

static pthread_once_t is_ready = PTHREAD_ONCE_INIT;

int fh_xml_parse(const uint8_t *bytes, int count, const fh_xml_events *events) {
    pthread_once(&is_ready, xmlInitParser);
    xmlSAXHandler sax;
    memset(&sax, 0, sizeof sax);
    sax.initialized = XML_SAX2_MAGIC;
    sax.startElementNs = on_begin;
    sax.endElementNs = on_end;
    sax.characters = on_text;
    sax.cdataBlock = on_text;
    sax.internalSubset = on_type;
    sax.reference = on_reference;
    sax.processingInstruction = on_instruction;
    parse parse = {NULL, events, 0};
    parse.parser = xmlCreatePushParserCtxt(&sax, &parse, NULL, 0, NULL);
    if (parse.parser == NULL) return -1;
    // Neither XML_PARSE_HUGE, so that the library's own bounds hold, nor XML_PARSE_NOENT or XML_PARSE_DTDLOAD.
    xmlCtxtUseOptions(parse.parser, XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING | XML_PARSE_IGNORE_ENC);
    const int error = xmlParseChunk(parse.parser, (const char *)bytes, count, 1);
    const int is_whole = error == 0 && parse.parser->wellFormed && !parse.is_over;
    if (parse.parser->myDoc != NULL) xmlFreeDoc(parse.parser->myDoc);
    xmlFreeParserCtxt(parse.parser);
    return is_whole ? 0 : -1;
}

struct fh_xml_writer {
    xmlBufferPtr buffer;
    xmlTextWriterPtr writer;
};

fh_xml_writer *fh_xml_writer_new(void) {
    pthread_once(&is_ready, xmlInitParser);
    fh_xml_writer *const made = calloc(1, sizeof *made);
    if (made == NULL) return NULL;
    made->buffer = xmlBufferCreate();
    if (made->buffer != NULL) made->writer = xmlNewTextWriterMemory(made->buffer, 0);
    if (made->writer == NULL || xmlTextWriterStartDocument(made->writer, NULL, "UTF-8", NULL) < 0) {
        fh_xml_writer_free(made);
        return NULL;
    }
    return made;
}

int fh_xml_writer_begin(fh_xml_writer *writer, const char *name) {
    return xmlTextWriterStartElement(writer->writer, (const xmlChar *)name) < 0 ? -1 : 0;
}

int fh_xml_writer_attribute(fh_xml_writer *writer, const char *name, const char *value) {
    return xmlTextWriterWriteAttribute(writer->writer, (const xmlChar *)name, (const xmlChar *)value) < 0 ? -1 : 0;
}

int fh_xml_writer_text(fh_xml_writer *writer, const char *text) {
    return xmlTextWriterWriteString(writer->writer, (const xmlChar *)text) < 0 ? -1 : 0;
}

int fh_xml_writer_end(fh_xml_writer *writer) { return xmlTextWriterEndElement(writer->writer) < 0 ? -1 : 0; }

const uint8_t *fh_xml_writer_bytes(fh_xml_writer *writer, int *count) {
    xmlTextWriterFlush(writer->writer);
    *count = xmlBufferLength(writer->buffer);
    return xmlBufferContent(writer->buffer);
}

void fh_xml_writer_free(fh_xml_writer *writer) {
    if (writer == NULL) return;
    if (writer->writer != NULL) xmlFreeTextWriter(writer->writer);
    if (writer->buffer != NULL) xmlBufferFree(writer->buffer);
    free(writer);
}
