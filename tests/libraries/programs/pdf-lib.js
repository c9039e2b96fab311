// A document with text, drawings, a form and an image, read again.
(async () => {
  const { PDFDocument, StandardFonts, rgb, degrees } = PDFLib;
  const document = await PDFDocument.create();
  document.setCreationDate(new Date(0));
  document.setModificationDate(new Date(0));
  document.setTitle("Report é");
  const font = await document.embedFont(StandardFonts.HelveticaBold);
  const page = document.addPage([300, 200]);
  page.drawText("Hello, PDF", { x: 20, y: 150, size: 24, font, color: rgb(0.1, 0.4, 0.8), rotate: degrees(5) });
  page.drawRectangle({ x: 20, y: 20, width: 100, height: 50, borderWidth: 2, borderColor: rgb(1, 0, 0) });
  page.drawSvgPath("M 0,20 L 100,160 Q 130,200 150,120 C 190,-40 200,200 300,150", { x: 10, y: 190, scale: 0.3 });
  const png = await document.embedPng("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==");
  page.drawImage(png, { x: 200, y: 20, width: 40, height: 40 });
  const field = document.getForm().createTextField("who");
  field.setText("Ann");
  field.addToPage(page, { x: 20, y: 90, width: 80, height: 20 });
  const bytes = await document.save({ useObjectStreams: false });
  const again = await PDFDocument.load(bytes, { updateMetadata: false });
  let sum = 0;
  for (const byte of bytes) sum = (sum * 31 + byte) >>> 0;
  return { size: bytes.length, sum, head: new TextDecoder().decode(bytes.subarray(0, 8)), pages: again.getPageCount(), title: again.getTitle(), who: again.getForm().getTextField("who").getText(), width: font.widthOfTextAtSize("Hello", 12), base64: (await document.saveAsBase64()).length > 100 };
})()
