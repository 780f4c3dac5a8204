//! An archive in zip's form, which Python runs as it is. The same files give the same bytes.

use std::io::Write;

use flate2::{Compression, Crc, write::DeflateEncoder};

/// 1980-01-01, the first day that zip knows.
const DATE: u16 = (1 << 5) | 1;
/// The version of zip that knows deflation: 2.0.
const VERSION: u16 = 20;
const DEFLATED: u16 = 8;
/// Names are UTF-8.
const UTF8: u16 = 1 << 11;

/// An archive of these files, in this order. Names and contents are far below zip's limits of old, 4 GiB and 65535 files.
pub(super) fn of<'a>(
    files: impl IntoIterator<Item = (&'a str, &'a [u8])>,
) -> std::io::Result<Vec<u8>> {
    let (mut archive, mut directory, mut count) = (Vec::new(), Vec::new(), 0_u16);
    for (name, content) in files {
        let mut crc = Crc::new();
        crc.update(content);
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(content)?;
        let packed = encoder.finish()?;
        let too_large = |_| std::io::Error::other(format!("`{name}` is too large for an archive"));
        let mut about = Vec::new();
        for number in [VERSION, UTF8, DEFLATED, 0, DATE] {
            about.extend(number.to_le_bytes());
        }
        about.extend(crc.sum().to_le_bytes());
        for size in [packed.len(), content.len()] {
            about.extend(u32::try_from(size).map_err(too_large)?.to_le_bytes());
        }
        about.extend(u16::try_from(name.len()).map_err(too_large)?.to_le_bytes());
        about.extend(0_u16.to_le_bytes());

        let offset = u32::try_from(archive.len()).map_err(too_large)?;
        archive.extend(b"PK\x03\x04");
        archive.extend(&about);
        archive.extend(name.as_bytes());
        archive.extend(&packed);

        directory.extend(b"PK\x01\x02");
        directory.extend(VERSION.to_le_bytes());
        directory.extend(&about);
        // No comment, the first disk, no attributes.
        directory.extend([0; 10]);
        directory.extend(offset.to_le_bytes());
        directory.extend(name.as_bytes());
        count += 1;
    }
    let too_large = |_| std::io::Error::other("too much for an archive");
    let offset = u32::try_from(archive.len()).map_err(too_large)?;
    archive.extend(&directory);
    archive.extend(b"PK\x05\x06\0\0\0\0");
    archive.extend(count.to_le_bytes());
    archive.extend(count.to_le_bytes());
    archive.extend(
        u32::try_from(directory.len())
            .map_err(too_large)?
            .to_le_bytes(),
    );
    archive.extend(offset.to_le_bytes());
    archive.extend(0_u16.to_le_bytes());
    Ok(archive)
}
