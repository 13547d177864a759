#!/bin/sh
# Make the office documents of this folder from their sources, with LibreOffice 7.4 and pandoc 2.17.
set -e
cd "$(dirname "$0")"
convert() { soffice --headless --convert-to "$1" --outdir . "$2"; }
convert 'docx:MS Word 2007 XML' page.html
convert odt page.docx
convert odt layout.fodt
convert xlsx table.csv
convert 'docx:MS Word 2007 XML' layout.odt
convert epub layout.odt
pandoc notes.md -o notes.docx
pandoc notes.md -o notes.odt
pandoc notes.md -o notes.epub
pandoc notes.md --toc --number-sections -o toc.docx
pandoc -f markdown changes.md -o changes.docx
convert odt changes.docx
pandoc slides.md -o slides.pptx
convert odp slides.pptx
rm slides.pptx  # too large for a repository
