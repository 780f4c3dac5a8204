use serde::{Serialize, de::DeserializeOwned};

/// The largest frame that either side accepts, in bytes, length prefix excluded: a hostile peer
/// must not be able to make the other one allocate more. Larger bodies travel as several frames.
pub const FRAME_LIMIT: usize = 16 << 20;

/// A frame that cannot be made or read.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The body is larger than [`FRAME_LIMIT`].
    #[error("a frame of {0} bytes is over the limit of {FRAME_LIMIT}")]
    TooLarge(usize),
    /// The body is not what this build writes.
    #[error("a frame that cannot be understood ({0})")]
    Malformed(#[from] postcard::Error),
}

/// Encodes a message as one frame: a big-endian `u32` length, then the body.
///
/// # Errors
/// When the body is over [`FRAME_LIMIT`].
pub fn encode<T: Serialize>(message: &T) -> Result<Vec<u8>, FrameError> {
    let mut frame = postcard::to_extend(message, vec![0; 4])?;
    let body = frame.len() - 4;
    let length = u32::try_from(body)
        .ok()
        .filter(|_| body <= FRAME_LIMIT)
        .ok_or(FrameError::TooLarge(body))?;
    frame[..4].copy_from_slice(&length.to_be_bytes());
    Ok(frame)
}

/// Decodes the body of one frame (the length prefix is already taken off).
///
/// # Errors
/// When the body is not of this protocol.
pub fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, FrameError> {
    Ok(postcard::from_bytes(body)?)
}
