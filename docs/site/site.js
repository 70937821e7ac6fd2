/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An option is searched for as one types it.  To the search, a word that begins with "-" is one that
 * a page must not have, so no page would have --crop.
 */
const post = Worker.prototype.postMessage;
const QUERY = 2; /* of Material's messages to its worker, the one with the words */

Worker.prototype.postMessage = function (message, ...rest) {
	if (message?.type === QUERY && typeof message.data === "string")
		message = { ...message, data: message.data.replace(/(^|\s)-+(?=\w)/g, "$1") };
	return post.call(this, message, ...rest);
};
