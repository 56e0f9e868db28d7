// The distance of colours for people with and without colour blindness, with the matrices of
// Machado, Oliveira and Fernandes (2009), in the space OKLab; 2 is just visible.

const sight = {
  normal: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  protan: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  deutan: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
  tritan: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
};

const times = (matrix, vector) => matrix.map((row) => row.reduce((sum, one, index) => sum + one * vector[index], 0));

function linear(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
}

function oklab(rgb) {
  const cones = times([[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566],
    [0.0883024619, 0.2817188376, 0.6299787005]], rgb).map(Math.cbrt);
  return times([[0.2104542553, 0.793617785, -0.0040720468], [1.9779984951, -2.428592205, 0.4505937099],
    [0.0259040371, 0.7827717662, -0.808675766]], cones);
}

const clamp = (part) => Math.min(1, Math.max(0, part));
const seen = (hex, matrix) => oklab(times(matrix, linear(hex)).map(clamp));

/** Returns the smallest distance between any two colours, in hundredths of that from black to white. */
export function leastDistance(colours) {
  let least = Infinity;
  for (const matrix of Object.values(sight)) {
    const points = colours.map((hex) => seen(hex, matrix));
    points.forEach((a, index) => points.slice(0, index).forEach((b) => {
      least = Math.min(least, 100 * Math.hypot(...a.map((one, at) => one - b[at])));
    }));
  }
  return least;
}
