// node ask.cjs SITE/_static < queries.json > hits.json : asks the shipped search over the shipped data.
const path = require("node:path");
const folder = path.resolve(process.argv[2]);
const { BookSearch } = require(path.join(folder, "search.js"));
require(path.join(folder, "search-data.js"));
const queries = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
const engine = new BookSearch(globalThis.bookSearchData);
process.stdout.write(JSON.stringify(queries.map((query) => engine.search(query))));
