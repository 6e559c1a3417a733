"""Spreadsheets with plain cells, as Excel and LibreOffice pack them."""

from xml.sax.saxutils import escape
from zipfile import ZipFile

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELATED = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_OFFICE = "urn:oasis:names:tc:opendocument:xmlns"


def write_xlsx(path, sheets):
    """Rows of numbers, texts and None, by the name of their sheet."""
    with ZipFile(path, "w") as book:
        named = enumerate(sheets, 1)
        listed = "".join(
            f'<sheet name="{escape(name)}" sheetId="{i}" r:id="r{i}"/>' for i, name in named
        )
        book.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="r" '
            f'Type="{_RELATED}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        )
        book.writestr(
            "xl/workbook.xml",
            f'<workbook xmlns="{_MAIN}" xmlns:r="{_RELATED}"><sheets>{listed}</sheets></workbook>',
        )
        related = "".join(
            f'<Relationship Id="r{i}" Type="{_RELATED}/worksheet" Target="worksheets/s{i}.xml"/>'
            for i in range(1, len(sheets) + 1)
        )
        book.writestr(
            "xl/_rels/workbook.xml.rels",
            f'<Relationships xmlns="{_PACKAGE}/relationships">{related}</Relationships>',
        )
        for i, rows in enumerate(sheets.values(), 1):
            lines = "".join(
                f'<row r="{n}">{"".join(map(_write_xlsx_cell, row, _places(n)))}</row>'
                for n, row in enumerate(rows, 1)
            )
            book.writestr(
                f"xl/worksheets/s{i}.xml",
                f'<worksheet xmlns="{_MAIN}"><sheetData>{lines}</sheetData></worksheet>',
            )


def _places(row):
    return (f"{letter}{row}" for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ")


def _write_xlsx_cell(value, place):
    if value is None:
        return ""
    if isinstance(value, str):
        return f'<c r="{place}" t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    return f'<c r="{place}"><v>{value!r}</v></c>'


def write_ods(path, sheets):
    """As `write_xlsx`."""
    tables = "".join(
        f'<table:table table:name="{escape(name)}">'
        + "".join(
            f"<table:table-row>{''.join(map(_write_ods_cell, row))}</table:table-row>"
            for row in rows
        )
        + "</table:table>"
        for name, rows in sheets.items()
    )
    kinds = "".join(f' xmlns:{kind}="{_OFFICE}:{kind}:1.0"' for kind in ("office", "table", "text"))
    with ZipFile(path, "w") as book:
        book.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        book.writestr(
            "META-INF/manifest.xml",
            f'<manifest:manifest xmlns:manifest="{_OFFICE}:manifest:1.0"><manifest:file-entry '
            'manifest:full-path="content.xml" manifest:media-type="text/xml"/></manifest:manifest>',
        )
        book.writestr(
            "content.xml",
            f"<office:document-content{kinds}><office:body><office:spreadsheet>{tables}"
            "</office:spreadsheet></office:body></office:document-content>",
        )


def _write_ods_cell(value):
    if value is None:
        return "<table:table-cell/>"
    if isinstance(value, str):
        return (
            f'<table:table-cell office:value-type="string"><text:p>{escape(value)}</text:p>'
            "</table:table-cell>"
        )
    return f'<table:table-cell office:value-type="float" office:value="{value!r}"/>'
